"""Explorations of one trained classifier: its scores and a threshold on them, and the phase it is in."""

import numpy as np
from contourpy import contour_generator
from ipywidgets import Checkbox
from matplotlib.collections import PolyCollection
from matplotlib.patches import Rectangle

from .. import phases as surface
from .. import saddle
from .._support import look
from ._canvas import FAINT, INK, Readout, book_style
from ._explorer import ALPHA, KAPPA, DataExplorer, margin_slider, size_slider, slider

N_TEST = 1000  # test samples in the confusion matrix
N_CURVE = 121


def _round_up(value, base=1.25):
    """Round up to a power of the base, so that an axis changes in steps, and rarely."""
    return float(base ** np.ceil(np.log(value) / np.log(base) - 1e-9))


class MarginsExplorer(DataExplorer):
    """Shows the scores of both classes, a threshold, and the metrics that follow from it."""

    def __init__(self, data, kappa, alpha_pos, alpha_neg, separation, *, kappa_neg, threshold, phi_pos, fit_bias):
        own = slider("kappa_neg", "of negatives, κ₋", kappa if kappa_neg is None else kappa_neg, *KAPPA, step=0.05)
        controls = {
            "kappa": margin_slider(kappa),
            "kappa_neg": own,
            "one_margin": Checkbox(kappa_neg is None, description="one margin, κ₋ = κ", indent=False),
            "alpha_pos": size_slider("alpha_pos", "positives α⁺", alpha_pos),
            "alpha_neg": size_slider("alpha_neg", "negatives α⁻", alpha_neg),
            "threshold": slider("threshold", "threshold γ", threshold, -6.0, 6.0),
            "phi_pos": slider("phi_pos", "test positives φ⁺", phi_pos, 0.01, 0.99),
            "fit_bias": Checkbox(bool(fit_bias), description="train a bias b", indent=False),
        }
        super().__init__(7.6, 4.6, data, separation, controls)
        self._prepare()

    def _prepare(self):
        figure = self.canvas.figure
        with book_style():
            grid = figure.add_gridspec(2, 3, width_ratios=(1.0, 1.0, 1.0), height_ratios=(1.1, 1.0))
            self.score_axes = figure.add_subplot(grid[0, :])
            self.matrix_axes, self.roc_axes, self.prc_axes = (figure.add_subplot(grid[1, i]) for i in range(3))
            self._prepare_scores()
            self._prepare_matrix()
            self._prepare_curves()

    def _prepare_scores(self):
        ax, moving = self.score_axes, self.canvas.moving
        ax.set(xlabel=r"score $\Delta$ of a test sample", ylabel="density")
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        self.lines, self._tails = {}, {}
        for label, colour in ((-1, look.BLUE), (1, look.VERMILLION)):
            self._tails[label] = moving(ax.add_collection(PolyCollection([], facecolor=colour, alpha=0.25, lw=0)))
            self.lines[label] = moving(*ax.plot([], [], color=colour))
        self.cut = moving(ax.axvline(0.0, color=INK, lw=1.6))
        self.middle = moving(ax.axvline(0.0, color=FAINT, lw=1.0, ls=":"))
        options = {"transform": ax.transAxes, "va": "top", "fontsize": 10.5}
        self._left = moving(ax.text(0.0, 1.0, "", color=look.BLUE, **options))
        self._right = moving(ax.text(1.0, 1.0, "", color=look.VERMILLION, ha="right", **options))

    def _prepare_matrix(self):
        ax, moving = self.matrix_axes, self.canvas.moving
        ax.set(xlim=(0, 2), ylim=(2, 0), aspect="auto")
        ax.set_xticks([0.5, 1.5], ["+", "−"], fontsize=12)
        ax.set_yticks([0.5, 1.5], ["+", "−"], fontsize=12)
        ax.set(xlabel="answer", ylabel="class", title=f"of {N_TEST} tested")
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set_visible(False)
        self._cells, self.counts = [], []
        for row in range(2):
            for column in range(2):
                colour = look.VERMILLION if row == 0 else look.BLUE
                cell = Rectangle((column + 0.02, row + 0.02), 0.96, 0.96, facecolor=colour, edgecolor="none")
                self._cells.append(moving(ax.add_patch(cell)))
                self.counts.append(
                    ax.text(column + 0.5, row + 0.5, "", ha="center", va="center", fontsize=12, color=INK)
                )
        moving(*self.counts)

    def _prepare_curves(self):
        moving = self.canvas.moving
        for ax, title, x, y in (
            (self.roc_axes, "ROC", "FPR", "TPR"),
            (self.prc_axes, "precision–recall", "recall", "precision"),
        ):
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.05), xlabel=x, ylabel=y, title=title)
            ax.set_xticks([0, 0.5, 1], ["0", "½", "1"])
            ax.set_yticks([0, 0.5, 1], ["0", "½", "1"])
        self.roc_axes.plot([0, 1], [0, 1], color=FAINT, lw=0.8, ls=":")
        self._chance = moving(self.prc_axes.axhline(0.5, color=FAINT, lw=0.8, ls=":"))
        self.roc_line = moving(*self.roc_axes.plot([], [], color=look.GREEN))
        self.prc_line = moving(*self.prc_axes.plot([], [], color=look.PURPLE))
        self.roc_dot = moving(*self.roc_axes.plot([], [], "o", color=INK, ms=7, zorder=4))
        self.prc_dot = moving(*self.prc_axes.plot([], [], "o", color=INK, ms=7, zorder=4))

    def _update(self):
        self.one_margin.disabled = not self.fit_bias.value  # margins of their own are told by the bias
        self.kappa_neg.disabled = self.one_margin.disabled or self.one_margin.value
        own = None if self.kappa_neg.disabled else self.kappa_neg.value
        sizes = self.alpha_pos.value, self.alpha_neg.value
        sol = saddle.solve(self.problem(), *sizes, self.kappa.value, kappa_neg=own, fit_bias=self.fit_bias.value)
        if not sol.converged:
            raise ArithmeticError("no solution was found at this point")
        m, cut, phi = sol.metrics, self.threshold.value, self.phi_pos.value
        rates = np.array([[m.tpr(cut), m.fnr(cut)], [m.fpr(cut), m.tnr(cut)]])
        spread = float(np.sqrt(sol.variance))
        if spread == 0.0:
            raise ArithmeticError("every sample gets the same score here: there is no density to draw")
        reach = _round_up(max(abs(sol.b) + 0.5 * abs(sol.r) + 3.5 * spread, 1.05 * abs(cut)))
        delta = np.sort(np.append(np.linspace(-reach, reach, 2 * N_CURVE - 1), cut))
        self.curves = {
            "q": float(sol.variance), "r": sol.r, "b": sol.b, "phase": sol.phase, "k_hat": sol.k_hat,
            "delta": delta, "density_pos": m.density(delta, 1), "density_neg": m.density(delta, -1),
            "threshold": cut, "rates": rates, "counts": N_TEST * np.array([[phi], [1.0 - phi]]) * rates,
            "roc": m.roc(N_CURVE), "prc": m.prc(phi, N_CURVE), "precision": float(m.ppv(phi, cut)),
            "ba": float(m.ba(cut)), "auc": float(m.auc()), "auprc": float(m.auprc(phi)), "best_threshold": -sol.b,
        }  # fmt: skip
        self.canvas.limits(self.score_axes, x=(-reach, reach), y=(0.0, 0.42 / (_round_up(spread) / 1.25)))
        self._draw_scores()
        self._draw_rest(phi)

    def _draw_scores(self):
        c = self.curves
        delta, cut = c["delta"], c["threshold"]
        for label, name, wrong in ((1, "density_pos", delta <= cut), (-1, "density_neg", delta >= cut)):
            self.lines[label].set_data(delta, c[name])
            x, y = delta[wrong], c[name][wrong]
            tail = np.column_stack([np.concatenate([x, x[::-1]]), np.concatenate([y, np.zeros_like(y)])])
            self._tails[label].set_verts([tail] if x.size > 1 else [])
        self.cut.set_xdata([cut, cut])
        self.middle.set_xdata([-c["b"]] * 2)
        self._left.set_text(f"negatives, {100 * c['rates'][1, 0]:.1f} % wrong")
        self._right.set_text(f"positives, {100 * c['rates'][0, 1]:.1f} % wrong")

    def _draw_rest(self, phi):
        c = self.curves
        for cell, text, count, rate in zip(
            self._cells, self.counts, c["counts"].ravel(), c["rates"].ravel(), strict=True
        ):
            cell.set_alpha(0.1 + 0.5 * float(rate))
            text.set_text(f"{count:.0f}")
        (tpr, _), (fpr, _) = c["rates"]
        self.roc_line.set_data(*c["roc"])
        self.prc_line.set_data(*c["prc"])
        self.roc_dot.set_data([fpr], [tpr])
        self.prc_dot.set_data([tpr], [c["precision"]])
        self._chance.set_ydata([phi, phi])
        self.summary.value = (
            f"{c['phase']}: q = {c['q']:.4f}, r = {c['r']:.4f}, b = {c['b']:+.4f}. At γ = {c['threshold']:.2f}: BA "
            f"{c['ba']:.4f}, recall {tpr:.4f}, precision {c['precision']:.4f}. AUC {c['auc']:.4f}, AUPRC "
            f"{c['auprc']:.4f}. BA is highest at γ = −b = {-c['b']:.2f}, the dotted line."
        )


SIDE = 33  # class sizes along each side of the phase diagram
N_SLICE = 61


def margins_along(moments, pos, neg, at_once=4):
    """Return critical margins for growing class sizes (n,), NaN after the first negative ones: slow, and not shown."""
    out = np.full(pos.shape, np.nan)
    for start in range(0, pos.size, at_once):
        part = slice(start, start + at_once)
        out[part] = surface.critical_margin(moments, pos[part], neg[part])
        if not out[part].min() >= 0.0:
            break
    return out


def margins_over(moments, size):
    """Return critical margins (n, n) over class sizes (n,); negative ones far from positive ones are only stand-ins.

    As both classes share C, exchanging them changes nothing; and more samples never make the margin larger.
    """
    plane = np.empty((size.size, size.size))
    for k in range(size.size):
        known = plane[:k, k - 1]  # with the next smaller size of one class
        negative = np.flatnonzero(known < 0.0)
        end = k + 1 if negative.size == 0 else negative[0] + 1
        plane[:end, k] = surface.critical_margin(moments, size[:end], np.full(end, size[k]))
        plane[end : k + 1, k] = plane[end - 1, k]
        plane[k, :k] = plane[:k, k]
    return plane


class PhasesExplorer(DataExplorer):
    """Shows where training without loss is possible, and the point that the controls choose."""

    def __init__(self, data, kappa, alpha_pos, alpha_neg, separation):
        controls = {
            "kappa": margin_slider(kappa),
            "alpha_pos": size_slider("alpha_pos", "positives α⁺", alpha_pos),
            "alpha_neg": size_slider("alpha_neg", "negatives α⁻", alpha_neg),
        }
        super().__init__(7.8, 3.9, data, separation, controls)
        self._plane = self._plane_of = None
        self._prepare()

    def _prepare(self):
        canvas, moving = self.canvas, self.canvas.moving
        fill = {"facecolor": look.SKY, "edgecolor": "none", "alpha": 0.3, "zorder": 0}
        with book_style():
            self.plane_axes, self.slice_axes, side = canvas.figure.subplots(1, 3, width_ratios=(1, 1, 0.52))
            left, right = self.plane_axes, self.slice_axes
            left.set(xscale="log", yscale="log", xlim=ALPHA, ylim=ALPHA, xlabel=r"$\alpha^+$", ylabel=r"$\alpha^-$")
            right.set(xscale="log", xlim=ALPHA, ylim=KAPPA, xlabel=r"$\alpha^+ + \alpha^-$", ylabel=r"margin $\kappa$")
            left.set_title("at this margin")
            right.set_title("at this imbalance")
            for ax in (left, right):
                ax.set_xticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
            left.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
            self._plane_fill = moving(left.add_collection(PolyCollection([], **fill)))
            self._slice_fill = moving(right.add_collection(PolyCollection([], **fill)))
            self.border = moving(*left.plot([], [], color=look.BLUE))
            self.slice_line = moving(*right.plot([], [], color=look.BLUE))
            self._ray = moving(*left.plot([], [], color=FAINT, lw=1.0, ls=":"))
            self._dots = [
                moving(*ax.plot([], [], "o", color=look.VERMILLION, ms=9, mec="white", mew=1.2, zorder=5))
                for ax in (left, right)
            ]
            self._readout = Readout(canvas, side, 10)

    def _surface(self, moments):
        """Return class sizes and critical margins over them, computed anew when the data change."""
        key = (self._loaded, self.separation.value)
        if self._plane_of != key:
            size = np.geomspace(*ALPHA, SIDE)
            self._plane, self._plane_of = (size, margins_over(moments.without_free(), size)), key
        return self._plane

    def _update(self):
        moments, kappa = self.problem(), self.kappa.value
        pos, neg = self.alpha_pos.value, self.alpha_neg.value
        size, plane = self._surface(moments)
        total, rho = np.geomspace(*ALPHA, N_SLICE), pos / (pos + neg)
        point, rest = saddle.solve(moments, pos, neg, kappa), moments.without_free()
        here = float(surface.critical_margin(rest, pos, neg))
        self.curves = {
            "size": size, "plane": plane, "alpha": total,
            "critical_margin": margins_along(rest, rho * total, (1.0 - rho) * total),
            "critical_here": here if rest is moments else max(here, 0.0),
            "point": point, "phase": point.phase, "rho_pos": rho, "ba": float(point.metrics.ba()),
        }  # fmt: skip
        self._draw_plane(kappa, pos, neg)
        self._draw_slice(kappa, pos + neg)
        self._write(point, kappa)

    def _draw_plane(self, kappa, pos, neg):
        size, plane = self.curves["size"], self.curves["plane"]
        # on logarithmic scales, where the surface is smooth
        contours = contour_generator(np.log(size), np.log(size), plane)
        lines = contours.lines(kappa)
        pieces = [np.exp(piece) for line in lines for piece in (line, [[np.nan, np.nan]])]
        border = np.concatenate(pieces) if pieces else np.empty((0, 2))
        self.curves["border"] = border
        self.border.set_data(*border.T)
        filled, _ = contours.filled(kappa, np.inf)
        self._plane_fill.set_verts([np.exp(ring) for ring in filled])
        low, high = np.log(ALPHA)
        reach = np.linspace(low - high, high - low, 2)
        self._ray.set_data(pos * np.exp(reach), neg * np.exp(reach))
        self._dots[0].set_data([pos], [neg])

    def _draw_slice(self, kappa, total):
        alpha, critical = self.curves["alpha"], self.curves["critical_margin"]
        self.slice_line.set_data(alpha, critical)
        self._slice_fill.set_verts(
            [[(alpha[0], 0.0), *zip(alpha, np.fmax(critical, 0.0), strict=True), (alpha[-1], 0.0)]]
        )
        self._dots[1].set_data([total], [kappa])

    def _write(self, point, kappa):
        c = self.curves
        self._readout.write(
            [
                ("you are here", look.VERMILLION),
                (f"{point.phase}", None),
                (rf"$\rho^+$ = {c['rho_pos']:.3f}", None),
                (rf"$\kappa_c$ = {c['critical_here']:.3f}", None),
                (f"q = {point.q:.3f}", None),
                (f"r = {point.r:.3f}", None),
                (f"b = {point.b:+.3f}", None),
                (f"BA = {c['ba']:.3f}", None),
                ("", None),
                ("separable", look.SKY),
            ]
        )
        says = {
            "SAT": "The data are separable with this margin: zero training loss is possible",
            "UNSAT": f"No weights reach this margin on all samples; {100 * point.train_error:.1f} % are misclassified",
            "COLLAPSED": "The classifier answers the majority class",
        }[point.phase]
        sign = (
            ""
            if point.phase != "UNSAT"
            else f" The multiplier of the sphere is k̂ = {point.k_hat:+.3f}"
            + (": the problem is convex." if point.k_hat >= 0.0 else ", negative: the problem is not convex.")
        )
        self.summary.value = f"{says} (κ = {kappa:.2f}, κ_c = {c['critical_here']:.3f}).{sign}"


def margins(
    data="ising",
    *,
    kappa=1.0,
    kappa_neg=None,
    alpha_pos=1.0,
    alpha_neg=4.0,
    separation=None,
    threshold=0.0,
    phi_pos=0.2,
    fit_bias=True,
):
    """Explore the scores of the two classes on test data, and the metrics at a threshold between them.

    Parameters
    ----------
    data : str, Moments or object with ``moments``
        As in :func:`metrics`.
    kappa : float
        Margin of the training, from 0 to 6; with another one of the negatives, that of the positives.
    kappa_neg : float, optional
        Margin of the negatives, from 0 to 6; by default that of the positives. The weights are those of the mean of
        both, and their difference moves the two densities as one. Without a bias there is one margin only.
    alpha_pos, alpha_neg : float
        Class sizes over L, from 0.1 to 100.
    separation : float, optional
        Distance ‖δ‖/√L between the classes; by default that of the data.
    threshold : float
        Score above which the answer is positive, from -6 to 6; the bias is already in the scores.
    phi_pos : float
        Share of positives in the test set, from 0.01 to 0.99.
    fit_bias : bool
        Whether the perceptron trains a bias.

    Returns
    -------
    Explorer
    """
    options = {"kappa_neg": kappa_neg, "threshold": threshold, "phi_pos": phi_pos, "fit_bias": fit_bias}
    return MarginsExplorer(data, kappa, alpha_pos, alpha_neg, separation, **options).start()


def phases(data="ising", *, kappa=0.5, alpha_pos=0.5, alpha_neg=1.5, separation=None):
    """Explore the phase diagram: the class sizes and margins at which the training set is separable.

    Parameters
    ----------
    data : str, Moments or object with ``moments``
        As in :func:`metrics`.
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
    return PhasesExplorer(data, kappa, alpha_pos, alpha_neg, separation).start()
