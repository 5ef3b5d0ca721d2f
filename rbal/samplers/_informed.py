"""Likelihood-informed sampling."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .._support.extras import needs
from .._support.validation import real_array
from . import _likelihood
from ._class_sizes import STRATEGIES, sizes_after
from ._model_sampler import ClassReport, ModelSampler, generator


class LikelihoodInformedSampler(ModelSampler):
    """Balance classes with a model of the minority: new samples from it, and majority samples chosen by their score.

    A restricted Boltzmann machine is trained on the minority alone. Its log-likelihood is the score of any sample.

    - *Over.* Markov chains start in turn at the samples of the minority and make ``steps`` Gibbs steps. Where they end
      is a new sample, if its score lies between two quantiles of the minority's own scores. All original samples stay.
    - *Under.* Majority samples at both edges of the distribution of their scores are dropped. What is left to drop is
      dropped at random.

    Both classes end with P' = round(P + mixing (N - P)) samples, from P, under only, to N, over only. More classes all
    meet at such a size between the smallest and the largest.

    Parameters
    ----------
    mixing : float
        From 0 to 1, as in :class:`rbal.RandomMixSampler`.
    sampling_strategy : float, str, dict or callable
        ``"auto"`` or ``"all"``: as above. A float: the ratio of minority to majority after resampling, where the mixing
        goes from under only to over only all the same; for two classes. ``"not majority"`` oversamples all to the size
        of the largest class, ``"minority"`` the smallest class alone. ``"not minority"`` undersamples all to the size
        of the smallest class, ``"majority"`` the largest class alone. A dict, or a function of y that returns one:
        class to number of samples; a class that is not in it stays as it is.
    rbm : RBM, optional
        Machine to use. One that is trained is used as it is, so that many samplings need one training; a copy of one
        that is not is trained, with ``n_states`` set to what X has. By default the machine of the paper, with 100
        hidden units and 250 epochs.
    steps : int
        Gibbs steps from a sample to a new one.
    over_range : (float, float), optional
        Quantiles of the minority's scores between which a new sample is kept; by default their whole range. A machine
        that was trained on few samples gives them higher scores than to others like them, so that a narrow range
        prefers what resembles them most. None keeps all.
    under_range : (float, float)
        Quantiles of the majority's scores outside of which samples are dropped first; where that drops too many, the
        range is widened on both sides. So ``(0.5, 0.5)`` drops from the edges only.
    max_tries : int
        New samples that may be generated for each one that is wanted, before it is an error that too few are kept.
    n_states : int, optional
        Q, for X with states 0 … Q-1 in every column, one alphabet for all; by default every column is looked at.
    n_bins : int
        Numbers with more different values than this are cut into so many bins.
    random_state : int, RandomState instance or None
        Seed of all that is random.

    Attributes
    ----------
    sampling_strategy_ : dict
        Class to number of samples after resampling.
    report_ : dict
        Class to what became of it: ``action``, ``n_before``, ``n_after``, ``n_generated``, ``n_rejected``, the range of
        scores ``low, high``, and arrays ``scores``, ``kept``, ``generated_scores``. Scores are log p up to the constant
        log Z, under the machine of the class, or that of the smallest class where the action is "under".
    rbms_ : dict
        Class to its machine. ``rbm=sampler.rbms_[label]`` uses it again.
    n_features_in_ : int
        Number L of features seen.
    feature_names_in_ : (L,) array
        Their names, when X has any.

    See Also
    --------
    rbal.RandomMixSampler : The same sizes, with copies and at random.
    rbal.RBMSMOTE : Chains that start between samples.

    Notes
    -----
    Columns of pandas categories, strings or booleans have their different values as states, and so have numbers with
    at most ``n_bins`` different values. Other numbers are cut at quantiles, for which each class counts the same. A new
    sample gets, in such a column, the value of a sample of its class in the same bin, drawn at random. Every value of
    the result thus occurs in its column of X, and constant columns stay constant: where a chain ends in a state that
    its column never takes, that cell goes back to where the chain started.

    With more than two classes, all meet at the same size; each one that grows has a machine of its own, and those
    that shrink are scored by that of the smallest class. A class with fewer samples than the machine has chains
    starts several chains at each sample.

    Cloning, as in a grid search, makes a trained machine an untrained one, so that no fold sees another's samples. To
    keep it, pass ``sklearn.frozen.FrozenEstimator(rbm)``.

    Examples
    --------
    >>> import numpy as np, rbal
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, 0], [30, 200])
    >>> X = (rng.random((230, 12)) < np.where(y[:, None] == 1, 0.7, 0.3)).astype(int)
    >>> rbm = rbal.RBM(n_hidden=5, n_epochs=20, progress=False)
    >>> sampler = LikelihoodInformedSampler(mixing=0.5, rbm=rbm, random_state=0)
    >>> X_new, y_new = sampler.fit_resample(X, y)
    >>> np.bincount(y_new), sampler.report_[1].n_after - sampler.report_[1].n_before
    (array([115, 115]), 85)
    """

    _sampling_type = "bypass"  # one class shrinks while another grows: neither of imbalanced-learn's own kinds
    _parameter_constraints = {  # noqa: RUF012
        **ModelSampler._parameter_constraints,
        "mixing": [Interval(Real, 0, 1, closed="both")],
        "sampling_strategy": STRATEGIES,
        "over_range": [None, "array-like"],
        "under_range": ["array-like"],
        "max_tries": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        mixing=0.5,
        sampling_strategy="auto",
        rbm=None,
        steps=10,
        over_range=(0.0, 1.0),
        under_range=(0.05, 0.95),
        max_tries=50,
        n_states=None,
        n_bins=10,
        random_state=None,
    ):
        self.mixing = mixing
        self.sampling_strategy = sampling_strategy
        self.rbm = rbm
        self.steps = steps
        self.over_range = over_range
        self.under_range = under_range
        self.max_tries = max_tries
        self.n_states = n_states
        self.n_bins = n_bins
        self.random_state = random_state

    def fit(self, X, y, **params):
        """Check the input and find the size of each class; use ``fit_resample`` to resample.

        Parameters
        ----------
        X : {array, dataframe, sparse matrix} of shape (n, L)
        y : (n,) array
        **params
            None are used.

        Returns
        -------
        self
        """
        super().fit(X, y, **params)
        self.sampling_strategy_ = sizes_after(self._check_X_y(X, y)[1], self.sampling_strategy, self.mixing)
        return self

    def _fit_resample(self, X, y):
        _check_range("under_range", self.under_range)
        if self.over_range is not None:
            _check_range("over_range", self.over_range)
        self.sampling_strategy_ = sizes_after(y, self.sampling_strategy, self.mixing)
        return self._resample(X, y, generator(self.random_state))

    def _new_classes(self, coded, y, rng):
        """Yield for each class its label, the places of the samples kept, and the states (k, L) of new ones."""
        members = {label: np.flatnonzero(y == label) for label in self.sampling_strategy_}
        rarest = min(members, key=lambda label: len(members[label]))
        busy = any(len(members[label]) != n for label, n in self.sampling_strategy_.items())
        for label, n in self.sampling_strategy_.items():
            own, by = members[label], label if n > len(members[label]) else rarest
            scores = _likelihood.score(self._machine(by, coded, y, rng), coded.codes[own]) if busy else None
            yield label, *self._resized(label, own, n, scores, coded, rng)

    def _resized(self, label, own, n, scores, coded, rng):
        """Return the places of a class that are kept, (m,), and new states (k, L); write its report."""
        size, rows, kept = len(own), coded.codes[:0], np.ones(len(own), bool)
        report = {"action": "kept", "n_before": size, "n_after": n, "scores": scores}
        if n > size:
            between = (-np.inf, np.inf) if self.over_range is None else np.quantile(scores, self.over_range)
            chains = self.rbms_[label], coded.codes[own], n - size, self.steps, coded.occurs, rng
            drawn = _likelihood.draw(*chains, between=between, max_tries=self.max_tries)
            rows = drawn.rows
            report |= {
                "action": "over", "low": float(between[0]), "high": float(between[1]), "generated_scores": drawn.scores,
                "n_generated": len(drawn.scores), "n_rejected": drawn.n_rejected, "n_undone": drawn.n_undone,
            }  # fmt: skip
        elif n < size:
            kept[:] = False
            kept[_likelihood.central(scores, n, self.under_range, rng)] = True
            report |= {"action": "under", "low": float(scores[kept].min()), "high": float(scores[kept].max())}
        self.report_[label] = ClassReport(**report, kept=kept)
        return own[kept], rows

    def plot(self, ax=None):
        """Draw histograms of the scores: minority, generated samples and majority, with those left out in pale.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib Axes
        """
        check_is_fitted(self, "report_")
        with needs("plot", "LikelihoodInformedSampler.plot"):
            import matplotlib.pyplot as plt

        from .._support import look

        ax = plt.subplots(figsize=(6.4, 3.2))[1] if ax is None else ax
        rarest = min(self.report_, key=lambda label: self.report_[label].n_before)
        # scores of other machines than that of the rarest class are on another scale
        shown = {label: report for label, report in self.report_.items() if label == rarest or report.action != "over"}
        if any(report.scores is None for report in shown.values()):
            raise ValueError("nothing to plot: all classes had their size already, and nothing was scored")
        colors = iter([look.BLUE, look.ORANGE, look.PURPLE, look.SKY] * len(shown))
        for label, report in shown.items():
            color = look.VERMILLION if label == rarest else next(colors)
            _histogram(ax, report.scores, report.kept, f"{label}, data", color)
        if (report := shown[rarest]).generated_scores is not None:
            inside = (report.generated_scores >= report.low) & (report.generated_scores <= report.high)
            _histogram(ax, report.generated_scores, inside, f"{rarest}, generated", look.GREEN)
        ax.set(xlabel=r"score, $\log p + \log Z$", ylabel="density")
        ax.legend(fontsize="small")
        return ax


def _check_range(name, value):
    value = real_array(name, value, finite=False)
    if value.shape != (2,) or not 0.0 <= value[0] <= value[1] <= 1.0:
        raise ValueError(f"{name} must be two quantiles, 0 <= low <= high <= 1, got {value.tolist()}")


def _histogram(ax, scores, inside, label, color):
    """Draw the density of scores (n,) in pale, and the part of it that is in the result as a line."""
    low, high = np.quantile(scores, [0.002, 0.998])
    bins = np.linspace(low, high, 41) if low < high else low + np.array([-0.5, 0.5])  # all samples may be the same
    share = np.full(len(scores), 1.0 / len(scores) / (bins[1] - bins[0]))
    ax.hist(scores, bins, weights=share, color=color, alpha=0.25)
    name = f"{label} ({inside.sum()} of {len(scores)})"
    ax.hist(scores[inside], bins, weights=share[inside], histtype="step", color=color, lw=1.8, label=name)
