"""The linear classifiers, with the interface of scikit-learn."""

import numpy as np
from scipy.linalg import helmert
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from .._support import parallel
from .._support.documented import Documented
from .._support.frames import checked_rows
from .._support.validation import (
    LARGEST,
    flag,
    instance,
    not_lost,
    number,
    one_hot_room,
    one_of,
    positive_int,
    real_array,
    seeded,
    squarable,
    states,
    unmasked,
)
from ..losses import LOSSES, homogeneity, trained
from ..moments import Moments
from ._order_parameters import OrderParameters
from ._perceptron import Problem

SMALLEST_RIDGE = 1e-50
LARGEST_MARGIN = 1e8  # biases grow with margins, and beyond this the last digits of scores are lost
FAR = 1e4  # from the origin, in units of the largest deviation of a feature: beyond, optimisers lose digits
SEQUENTIAL = ("hinge", "squared_hinge")  # losses whose solvers visit one row after the other


class _LinearClassifier(Documented, ClassifierMixin, BaseEstimator):
    """Classifier with scores x·J/√L - b of real features, or of states one-hot encoded in the zero-sum gauge."""

    def fit(self, X, y, sample_weight=None):
        """Train on samples X with two labels y.

        Parameters
        ----------
        X : (n, L) array
        y : (n,) array
        sample_weight : (n,) array, optional
            Factors on the loss of each sample, >= 0.

        Returns
        -------
        self
        """
        self._train(*self._prepare(X, y, sample_weight))
        return self

    def _prepare(self, X, y, sample_weight):
        """Return features over √L (n, D), signs (n,) and weights (n,), without zero-sum directions and zero weights."""
        unmasked("X", X), unmasked("y", y), unmasked("sample_weight", sample_weight)
        X, y, small = self._checked(X, y)
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. "
                f"The type of the target is {type_of_target(y)}: y holds {len(self.classes_)} classes"
            )
        if len(self.classes_) < 2:
            raise ValueError("y must hold two classes, got 1 class")
        signs = np.where(y == self.classes_[1], 1.0, -1.0)
        if sample_weight is None:
            return self._encode(X, small), signs, np.ones(len(X))
        sample_weight = real_array("sample_weight", sample_weight, (0, 1), finite=False)
        weight = _check_sample_weight(sample_weight[()], X, dtype=float, ensure_non_negative=True)
        used = weight > 0.0
        number("the largest sample_weight", weight.max(), 1.0 / LARGEST, LARGEST)  # sums of squares are numbers
        if len(np.unique(signs[used])) < 2:
            raise ValueError("sample_weight must leave samples of both classes")
        return self._encode(X[used], small), signs[used], weight[used]

    def _checked(self, X, y):
        """Return X (n, L) and y (n,) as scikit-learn checks them, and whether X is known to have no large numbers.

        The checks of scikit-learn take longer than training a small classifier. An array of numbers whose squares have
        a moderate sum, with integer labels, would pass them.
        """
        if _plain(X, 2) and _plain(y, 1) and y.dtype.kind != "f" and len(X) == len(y) and X.size:
            X = X.astype(float, copy=False)
            with np.errstate(over="ignore", invalid="ignore"):
                small = LARGEST**-2 < np.vdot(X, X) < LARGEST**2
            if small:
                self.n_features_in_ = X.shape[1]
                vars(self).pop("feature_names_in_", None)
                return X, y, True
        X, y = checked_rows(self, X, y, dtype=float)
        check_classification_targets(y)
        return X, y, False

    def _encode(self, X, small):
        L = X.shape[1]
        if self.n_states is None:
            if not small:
                squarable("X", not_lost("X", X), getattr(self, "feature_names_in_", None))
            return X / np.sqrt(L)
        Q = positive_int("n_states", self.n_states)
        one_hot_room("n_states", len(X), L, Q)
        return (helmert(Q).T / np.sqrt(L)).take(states("X", X, Q), axis=0).reshape(len(X), -1)

    def _decode(self, J):
        return J if self.n_states is None else J.reshape(self.n_features_in_, -1) @ helmert(self.n_states)

    def decision_function(self, X):
        """Return the scores x·J/√L - b.

        Parameters
        ----------
        X : (n, L) array

        Returns
        -------
        (n,) array
        """
        check_is_fitted(self)
        X = checked_rows(self, unmasked("X", X), dtype=float, reset=False)
        L = X.shape[1]
        if self.n_states is None:
            return X @ self.J_ / np.sqrt(L) - self.b_
        return self.J_[np.arange(L), states("X", X, self.n_states)].sum(axis=1) / np.sqrt(L) - self.b_

    def predict(self, X):
        """Return labels: the positive class where the score is positive.

        Parameters
        ----------
        X : (n, L) array

        Returns
        -------
        (n,) array
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def order_parameters(self, moments):
        """Return q = JᵀCJ/L, r = J·δ/L and b - J·M/√L, with the true moments of the data.

        Parameters
        ----------
        moments : Moments
            Moments of the classes that the training samples were drawn from.

        Returns
        -------
        OrderParameters
            A named tuple (q, r, b), to compare with the fields of a solution; ``Metrics(*...)`` takes it.
        """
        check_is_fitted(self)
        instance("moments", moments, Moments)
        if np.shape(moments.M) != self.J_.shape:
            raise ValueError(f"moments must be of data with weights of shape {self.J_.shape}, got {moments}")
        L = moments.L
        return OrderParameters(
            q=moments.variance(self.J_) / L,
            r=float(np.sum(self.J_ * moments.delta)) / L,
            b=float(self.b_ - np.sum(self.J_ * moments.M) / np.sqrt(L)),
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _plain(array, ndim):
    """Whether this is numpy's own array, of real numbers and with so many dimensions."""
    return type(array) is np.ndarray and array.ndim == ndim and array.dtype.kind in "biuf"


class SphericalPerceptron(_LinearClassifier):
    """Perceptron with margin on the sphere, trained to optimality.

    Parameters
    ----------
    kappa : float
        Margin, >= 0, of both classes or of the positives.
    kappa_neg : float, optional
        Margin of the negatives, if it is another one; the mean of both must be >= 0.
    n_states : int, optional
        Q for categorical features coded 0 … Q-1, one-hot encoded in the zero-sum gauge; None for real features.
    sat : {"largest_margin", "typical"}
        Which weights to return where the data are separable with margin ``kappa``: those of largest margin, or a draw
        from all that have zero loss, which is what the theory of this phase describes.
    sweeps : int
        Steps of the random walk to a typical solution, for each weight.
    tol : float
        Largest violation of the optimality conditions, relative to the norm of the sample weights.
    max_iter : int
        Steps of the descent, from face to face.
    warm_start : bool
        Whether ``fit`` begins at the solution of the last one, which is quick on a path of ``kappa`` or of sample
        weights where each fit is close to the one before. Where the multiplier is negative it leads to the minimum that
        is next to that solution.
    random_state : int, Generator or None
        Randomness of a typical solution; nothing else is random.

    Attributes
    ----------
    J_ : (D,) or (L, Q) array
        Weights: squared norm D for real features, L·Q and zero sum over the states for categorical ones.
    b_ : float
        Bias: the score of a sample is x·J/√L - b.
    multiplier_ : float
        k̂ of the stationarity condition Σ c s y x/√L = k̂ J, of either sign; 0 where the loss vanishes.
    objective_ : float
        Summed loss, with its weights.
    kkt_residual_ : float
        Violation of the optimality conditions; at largest margin, by how much support vectors differ, relatively.
    n_iter_ : int
        Steps taken.
    classes_ : (2,) array
        Labels; the second is the positive class.

    Notes
    -----
    Where the multiplier is negative the problem is not convex and the result is a local minimum. A typical solution is
    found by hit and run from the one of largest margin. A walk that is too short stays close to it, and with more
    weights it must be longer.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, -1], [100, 300])
    >>> X = rng.normal(size=(400, 50)) + 0.2 * y[:, None]
    >>> clf = SphericalPerceptron(kappa=1.0).fit(X, y)
    >>> round(float(np.sum(clf.J_**2)), 6), bool(clf.kkt_residual_ < 1e-6)
    (50.0, True)
    """

    def __init__(
        self,
        *,
        kappa=1.0,
        kappa_neg=None,
        n_states=None,
        sat="largest_margin",
        sweeps=250,
        tol=1e-6,
        max_iter=20_000,
        warm_start=False,
        random_state=None,
    ):
        self.kappa = kappa
        self.kappa_neg = kappa_neg
        self.n_states = n_states
        self.sat = sat
        self.sweeps = sweeps
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state

    def _train(self, features, signs, weight):
        kappa, shift = common_margin(self.kappa, self.kappa_neg)
        one_of("sat", self.sat, ("largest_margin", "typical"))
        sweeps = positive_int("sweeps", self.sweeps)
        # drawing a fresh seed that nothing needs would take longer than much of what follows
        unseeded = self.random_state is None and self.sat != "typical"
        rng = None if unseeded else seeded("random_state", self.random_state)
        tol, max_iter = number("tol", self.tol, 0.0, open_low=True), positive_int("max_iter", self.max_iter)
        radius = np.sqrt(self.n_features_in_ * (self.n_states or 1))
        problem = Problem(features, signs, weight, kappa, radius)
        last = getattr(self, "_last", None) if flag("warm_start", self.warm_start) else None
        if last is not None and len(last[0]) != features.shape[1]:
            last = None
        J, b, self.multiplier_, self.kkt_residual_, self.n_iter_ = problem.solve(tol, max_iter, last)
        # The loss vanishes, also of each sample: a small weight could hide one that is far below its margin.
        lowest = problem.margins(J, b).min()
        if problem.objective(J, b) <= 1e-12 * weight.sum() * (1.0 + kappa) and lowest >= kappa - 1e-8 * (1.0 + kappa):
            self.multiplier_ = 0.0
            widest = problem.largest_margin()
            if problem.margins(*widest[:2]).min() > kappa:  # otherwise only a single point has zero loss
                J, b, self.kkt_residual_ = widest
        self.objective_ = problem.objective(J, b)
        draw = self.sat == "typical" and self.objective_ == 0.0 and problem.margins(J, b).min() > kappa
        J, b = problem.typical(J, b, sweeps, rng) if draw else (problem.lift(J), b)
        self.b_ = b + shift
        self.J_, self._last = self._decode(J), (J, b, kappa)


class LinearSVM(_LinearClassifier):
    """Support vector machine in the scaling of the theory, solved by scikit-learn.

    Parameters
    ----------
    lam : float
        Strength λ̃ of the ridge, > 0; scikit-learn's C is 1/λ̃.
    loss : {"hinge", "squared_hinge", "square", "logistic"}
        Loss of the margin u: (κ - u)₊, (κ - u)₊², (κ - u)², log(1 + exp(κ - u)).
    kappa : float, optional
        Margin κ, of both classes or of the positives; 1 by default, and 0 for the logistic loss.
    kappa_neg : float, optional
        Margin of the negatives, if it is another one. The mean of both must be > 0, and 0 for the logistic loss, where
        they are shifts; it needs a bias.
    fit_bias : bool
        Whether to fit the bias b, without a penalty on it. Without it, centre the data if you want the theory's b = 0.
    n_states : int, optional
        Q for categorical features coded 0 … Q-1, one-hot encoded in the zero-sum gauge; None for real features.
    tol : float
        Tolerance of scikit-learn's solver.
    max_iter : int
        Largest number of its iterations.

    Attributes
    ----------
    J_ : (D,) or (L, Q) array
        Weights.
    b_ : float
        Bias: the score of a sample is x·J/√L - b, so that b is minus scikit-learn's intercept.
    objective_ : float
        Summed loss with its weights, plus the ridge.
    n_iter_ : int
        Iterations of scikit-learn's solver.
    classes_ : (2,) array
        Labels; the second is the positive class.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([1, -1], [100, 300])
    >>> X = rng.normal(size=(400, 50)) + 0.2 * y[:, None]
    >>> print(f"{LinearSVM(lam=0.1).fit(X, y).score(X, y):.2f}")
    0.96
    """

    def __init__(
        self,
        *,
        lam=1.0,
        loss="hinge",
        kappa=None,
        kappa_neg=None,
        fit_bias=True,
        n_states=None,
        tol=1e-5,
        max_iter=1_000_000,
    ):
        self.lam = lam
        self.loss = loss
        self.kappa = kappa
        self.kappa_neg = kappa_neg
        self.fit_bias = fit_bias
        self.n_states = n_states
        self.tol = tol
        self.max_iter = max_iter

    def _train(self, features, signs, weight):
        lam = number("lam", self.lam, 0.0, open_low=True)
        loss = LOSSES[one_of("loss", self.loss, trained())]
        number("tol", self.tol, 0.0, open_low=True), positive_int("max_iter", self.max_iter)
        flag("fit_bias", self.fit_bias)
        kappa, shift, unit_lam = self._margin(loss, lam)
        if not unit_lam >= SMALLEST_RIDGE * max(1.0, weight.max()):  # liblinear would search a line for ever
            raise ValueError(f"lam must be >= {SMALLEST_RIDGE:g}, in units of the largest sample weight, got {lam:g}")
        features, origin = _near_the_origin(features) if self.fit_bias else (features, None)
        rows = distinct_rows(features, signs, weight) if self.loss in SEQUENTIAL else (features, signs, weight)
        if self.loss == "hinge" and not self.fit_bias:
            # libsvm always fits a bias, which vanishes if every sample is mirrored, at half the weight
            mirrored = np.concatenate([rows[0], -rows[0]]), np.concatenate([rows[1], -rows[1]])
            weights = 0.5 * np.concatenate([rows[2], rows[2]])
        else:
            *mirrored, weights = rows
        options = {"fit_bias": self.fit_bias, "tol": self.tol, "max_iter": self.max_iter}
        solver = parallel.aside(loss.estimator(1.0 / unit_lam, **options).fit, *mirrored, sample_weight=weights)
        scale = kappa / loss.margin if loss.margin else 1.0
        J = scale * solver.coef_.ravel()
        self.n_iter_ = int(np.max(solver.n_iter_)) if np.any(solver.n_iter_) else 1  # a ridge has a closed form
        b = -scale * float(np.ravel(solver.intercept_)[0]) if self.fit_bias else 0.0
        u = signs * (features @ J - b)
        self.objective_ = float(weight @ loss.value(u, kappa) + 0.5 * lam * J @ J)
        self.b_ = b + shift + (0.0 if origin is None else float(origin @ J))
        self.J_ = self._decode(J)

    def _margin(self, loss, lam):
        """Return the common margin, the shift of the bias, and the ridge if the loss's own margin is used instead.

        With J = κJ' a loss of degree p gives κᵖ [Σ ℓ(u') + λ̃κ²⁻ᵖ/2 ‖J'‖²], with margin 1.
        """
        kappa = loss.margin if self.kappa is None else self.kappa
        degree = homogeneity(loss)
        kappa, shift = common_margin(kappa, self.kappa_neg, 0.0 if degree else -np.inf)
        if shift and not self.fit_bias:
            raise ValueError(
                "kappa_neg must be kappa, or left out, with fit_bias=False: the margins are told by the bias"
            )
        if degree is None and kappa != loss.margin:
            raise ValueError(f"the mean margin must be {loss.margin:g} for loss={loss.name!r}, got {kappa:g}")
        if degree and kappa == 0.0:
            raise ValueError("kappa, or its mean with kappa_neg, must be > 0, got 0")
        return kappa, shift, lam * (kappa / loss.margin) ** (2 - degree) if degree else lam


def _near_the_origin(features):
    """Return features (n, D) minus their mean (D,), which a free bias absorbs, and the mean, if that is far away.

    Otherwise they are returned unchanged, with None.
    """
    mean, spread = features.mean(axis=0), features.std(axis=0)
    far = np.abs(mean).max() > FAR * spread.max() > 0.0
    return (features - mean, mean) if far else (features, None)


def distinct_rows(features, signs, weight):
    """Return each row once, with the sum of its weights, sorted by value.

    The result of a solver that visits one row after the other depends, within its tolerance, on the order and on the
    repetition of rows: without this, a weight of 2 would not be the same as the row twice.
    """
    rows = np.ascontiguousarray(np.column_stack([signs, features]) + 0.0)  # -0 is 0
    keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    _, first, position = np.unique(keys, return_index=True, return_inverse=True)
    return features[first], signs[first], np.bincount(position, weight)


def common_margin(kappa, kappa_neg, lowest=0.0):
    """Return the common margin with the same weights as the margins of both classes, and the shift of the bias.

    A loss is a function of κ - y (score - b): with κ± = κ ± d it is that of a common margin κ and the bias b + d.
    """
    if kappa_neg is None:
        return number("kappa", kappa, 0.0, LARGEST_MARGIN), 0.0
    pos, neg = (number(n, v, -LARGEST_MARGIN, LARGEST_MARGIN) for n, v in (("kappa", kappa), ("kappa_neg", kappa_neg)))
    return number("the mean of kappa and kappa_neg", 0.5 * (pos + neg), lowest), 0.5 * (neg - pos)
