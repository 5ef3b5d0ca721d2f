"""Explore classes of unequal width, whose best threshold leaves the midpoint."""

import numpy as np
from ipywidgets import FloatLogSlider

from .. import saddle
from .._support import look
from .._support.validation import number
from ..metrics import MixtureMetrics
from ..moments import Mixture, spectrum_of
from ..moments.internal import Diagonal
from ._canvas import FAINT, INK, Readout, book_style, rounded, two_digits
from ._explorer import ROOM, WIDE, DataExplorer, margin_slider, size_slider

WIDTHS = np.geomspace(0.1, 10.0, 41)
N_CURVE = 241


def widened(moments, width):
    """Return the mixture of two classes with these moments, but with ``width`` times the covariance for the positives.

    Parameters
    ----------
    moments : Moments or Spectrum
        Of the negatives, and of the shift between the classes.
    width : float
        > 0.

    Returns
    -------
    Mixture
        With the positive cluster first. It knows the eigenvalues of the covariance and the shift along them, which is
        all that a solution needs, and its centres are given in that basis.
    """
    spectrum, width = spectrum_of(moments), number("width", width, 0.0, open_low=True)
    lam, half = spectrum.lam, 0.5 * np.sqrt(spectrum.s)
    centres = np.sqrt(spectrum.L) * np.stack([half, -half])
    mixture = Mixture(
        L=spectrum.L, Q=spectrum.Q, means=centres, centres=centres,
        covs=([lam], np.zeros(2, np.int64), np.array([width, 1.0])),
        clusters=(np.array([1, -1]), np.ones(2), 1),
    )  # fmt: skip
    mixture.blocks = Diagonal(lam[None], spectrum.g, np.stack([half, -half]), spectrum.g_null)
    return mixture


def crossing(q_pos, q_neg, r):
    """Return where the density of the positives rises above that of the negatives, counted from midway: the best cut.

    :meth:`rbal.metrics.MixtureMetrics.best_threshold` searches for it among any number of clusters, which is too slow
    to follow a slider. For two it is a root of a quadratic equation, a u² - 2h u + c = 0.

    Parameters
    ----------
    q_pos, q_neg : (n,) array
        Variances of the scores; where both are 0, every sample has one score, and midway is as good as any.
    r : (n,) array
        Distance of their means, >= 0.

    Returns
    -------
    (n,) ndarray
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        a, log = 1.0 / q_pos - 1.0 / q_neg, np.log(q_pos / q_neg)
        h, c = 0.5 * r * (1.0 / q_pos + 1.0 / q_neg), 0.25 * r**2 * a + log
        root = np.sqrt(r**2 / (q_pos * q_neg) - a * log)  # -a·log is never negative
        return np.where(h + root > 0.0, c / (h + root), 0.0)


class WidthsExplorer(DataExplorer):
    """Shows the scores of two classes of unequal width, and balanced accuracy at three thresholds."""

    def __init__(self, data, width, kappa, alpha_pos, alpha_neg, separation):
        controls = {
            "width": FloatLogSlider(
                number("width", width, WIDTHS[0], WIDTHS[-1]), min=-1.0, max=1.0, step=0.001,
                description="width of positives w", readout_format=".2f", style=WIDE, layout=ROOM,
            ),
            "kappa": margin_slider(kappa),
            "alpha_pos": size_slider("alpha_pos", "positives α⁺", alpha_pos),
            "alpha_neg": size_slider("alpha_neg", "negatives α⁻", alpha_neg),
        }  # fmt: skip
        self._curve, self._key = None, None
        super().__init__(7.6, 5.0, data, separation, controls)
        self._prepare()

    def _prepare(self):
        figure, moving = self.canvas.figure, self.canvas.moving
        with book_style():
            grid = figure.add_gridspec(2, 2, width_ratios=(5, 1.9))
            self.score_axes, self.axes = (figure.add_subplot(grid[i, 0]) for i in range(2))
            ax = self.score_axes
            ax.set(xlabel=r"score $\Delta$ of a test sample", ylabel="density")
            ax.set_yticks([])
            colours = {"neg": look.BLUE, "pos": look.VERMILLION}
            self.bells = {name: moving(*ax.plot([], [], color=colour)) for name, colour in colours.items()}
            styles = {
                "trained": {"color": look.PURPLE, "ls": "--", "lw": 1.6},
                "midway": {"color": INK, "ls": ":", "lw": 1.6},
                "best": {"color": look.GREEN, "ls": "-", "lw": 2.2},
            }
            self.cuts = {name: moving(ax.axvline(0.0, **style)) for name, style in styles.items()}
            ax = self.axes
            ax.set(xscale="log", xlim=(WIDTHS[0], WIDTHS[-1]), xlabel="width w of the positives", ylabel="BA")
            ax.set_xticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
            ax.minorticks_off()
            two_digits(ax)
            self._here = moving(ax.axvline(1.0, color=FAINT, lw=1.0, ls=":"))
            self.lines = {name: moving(*ax.plot([], [], **style)) for name, style in styles.items()}
            self.dots = {
                name: moving(*ax.plot([], [], "o", color=style["color"], ms=5)) for name, style in styles.items()
            }
            self._readout = Readout(self.canvas, figure.add_subplot(grid[:, 1]), 12)

    def _solve(self, moments, width):
        sizes = self.alpha_pos.value, self.alpha_neg.value
        return saddle.solve(widened(moments, width), *sizes, self.kappa.value)

    def _update(self):
        moments = self.problem()
        key = self._loaded, self.separation.value, self.alpha_pos.value, self.alpha_neg.value, self.kappa.value
        if key != self._key:  # the curves over all widths do not depend on the one chosen
            found = [self._solve(moments, width).metrics for width in WIDTHS]
            mean, q = np.stack([m.mean for m in found]), np.stack([m.q for m in found])
            self._curve, self._key = self._at_cuts(MixtureMetrics(mean, q, found[0].signs, found[0].shares))[1], key
        solution = self._solve(moments, self.width.value)
        m = solution.metrics
        cuts, ba = self._at_cuts(m)
        span = max(0.5 * abs(m.r) + 3.4 * np.sqrt(m.q.max()), 1.1 * abs(m.b), 1e-6)
        delta = np.linspace(-m.b - span, -m.b + span, N_CURVE)
        self.curves = {
            "width": WIDTHS, **{f"ba_{name}": values for name, values in self._curve.items()}, "delta": delta,
            "pos": self._density(m, delta, 1), "neg": self._density(m, delta, -1), "phase": solution.phase,
            "thresholds": {name: float(at) for name, at in cuts.items()},
            "ba": {name: float(value) for name, value in ba.items()},
            "auc": float(m.auc()), "r": float(m.r), "b": float(solution.b), "q": m.q,
        }  # fmt: skip
        self._draw_curves()

    @staticmethod
    def _density(m, delta, label):
        return m.density(delta, label) if m.q.all() else np.zeros_like(delta)

    @staticmethod
    def _at_cuts(m):
        """Return the three thresholds, and balanced accuracy at each."""
        cuts = {"trained": np.zeros_like(m.b), "midway": -m.b}
        cuts["best"] = cuts["midway"] + crossing(m.q[..., 0], m.q[..., 1], m.r)
        return cuts, {name: m.ba(at) for name, at in cuts.items()}

    def _draw_curves(self):
        c, width = self.curves, self.width.value
        for name, line in self.bells.items():
            line.set_data(c["delta"], c[name])
        top = 1.1 * max(c["pos"].max(), c["neg"].max()) or 1.0
        self.canvas.limits(self.score_axes, (c["delta"][0], c["delta"][-1]), (0, top))
        for name, line in self.lines.items():
            line.set_data(WIDTHS, c[f"ba_{name}"])
            self.dots[name].set_data([width], [c["ba"][name]])
            at = c["thresholds"][name]
            self.cuts[name].set_xdata([at if np.isfinite(at) else np.nan] * 2)
        self._here.set_xdata([width] * 2)
        self.canvas.limits(self.axes, y=rounded(np.concatenate([c[f"ba_{name}"] for name in self.lines])))
        self._write()

    def _write(self):
        c = self.curves
        off = c["thresholds"]["best"] - c["thresholds"]["midway"]
        self._readout.write(
            [
                ("negatives", look.BLUE),
                ("positives", look.VERMILLION),
                ("", None),
                ("as trained", look.PURPLE),
                (f"BA {c['ba']['trained']:.4f}", None),
                ("midway", INK),
                (f"BA {c['ba']['midway']:.4f}", None),
                ("best threshold", look.GREEN),
                (f"BA {c['ba']['best']:.4f}", None),
                (f"{off:+.3f} from midway", None),
                *([("separable", None)] if c["phase"] == "SAT" else []),
            ]
        )
        self.summary.value = (
            f"Balanced accuracy {c['ba']['trained']:.4f} as trained, {c['ba']['midway']:.4f} with the threshold midway "
            f"between the mean scores, {c['ba']['best']:.4f} at the best threshold, {off:+.4f} from there."
        )


def widths(data="random", *, width=4.0, kappa=0.5, alpha_pos=2.0, alpha_neg=2.0, separation=None):
    """Explore two classes of unequal width, whose best threshold is not midway between their mean scores.

    Parameters
    ----------
    data : str, Moments or object with ``moments``
        As in :func:`metrics`; its covariance is that of the negatives.
    width : float
        Covariance of the positives in units of that of the negatives, from 0.1 to 10.
    kappa : float
        Margin of the training, from 0 to 6.
    alpha_pos, alpha_neg : float
        Class sizes over L, from 0.1 to 100.
    separation : float, optional
        Distance ‖δ‖/√L between the classes; by default that of the data.

    Returns
    -------
    Explorer
    """
    return WidthsExplorer(data, width, kappa, alpha_pos, alpha_neg, separation).start()
