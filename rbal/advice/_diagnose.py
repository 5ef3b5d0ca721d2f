"""Find where the theory does not apply: small, separable, non-Gaussian, unequally spread or curved classes."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr
from sklearn.metrics.pairwise import euclidean_distances

from ..metrics import METRICS, evaluate
from ._pipeline import coding
from ._remedies import designs

ROWS = 500  # largest number of rows of each class that are looked at
FEW_FEATURES = 10
FEW_POSITIVES = 30


def notes(data, at, setting, random_state=0, wide=False):
    """Return two lists of sentences on how the data differ from what the theory assumes, grave ones and light ones.

    With ``wide`` it knows that classes differ in width.
    """
    grave, light = _of_size(data, at, designs(setting).place["as is"], setting.kernel)
    X, y = _sample(data, np.random.default_rng(random_state))
    if X is not None and setting.kernel != "linear":
        grave += _of_shape(np.exp(-setting.gamma * euclidean_distances(X, squared=True)), y, wide)
    elif X is not None:
        for found in (_of_shape(_products(X), y, wide), _of_curvature(X, y)):
            grave += found
    return grave, light


def _of_size(data, at, plain, kernel):
    """Return sentences on the sizes, and on the classifier of the unmodified data, which is design ``plain``."""
    grave, light = [], []
    rank = len(data.sample.values)
    if rank < FEW_FEATURES and kernel == "linear":  # features of a kernel are many
        grave.append(
            f"Only {rank} independent feature{'s' if rank > 1 else ''}: the theory is exact for many, and rough here."
        )
    smaller = min(data.n_pos, data.n_neg)
    if smaller < FEW_POSITIVES:
        grave.append(f"Only {smaller} samples in the smaller class: all predictions have wide errors.")
    if at.collapsed[plain]:
        light.append("Trained as it is, the classifier would give every sample the label of the larger class.")
    if at.train_error[plain] < 1e-3 and at.auc[plain] > 0.999:
        light.append("The classes are all but separable: every remedy will do, and differences are small.")
    return grave, light


def _sample(data, rng):
    """Return some coded rows (n, D) of both classes and which are positive (n,), or None twice if they are too few."""
    X, y = data.rows
    chosen = []
    for label in (True, False):
        members = rng.permutation(np.flatnonzero(y == label))[:ROWS]
        if len(members) < 2 * FEW_POSITIVES // 3:
            return None, None
        chosen.append(members)
    chosen = rng.permutation(np.concatenate(chosen))
    names = {name: str(name) for name in X.columns}
    coder = coding([names[n] for n in data.numeric], [names[n] for n in data.categorical], data.standardize)
    return coder.fit_transform(X.iloc[chosen].rename(columns=names)), y[chosen]


def _ridge_scores(K, y):
    """Score each half of n samples by kernel ridge regression on the other half: K (n, n), y (n,) bool, result (n,)."""
    n = len(y)
    fold = np.zeros(n, int)
    for label in (True, False):
        fold[np.flatnonzero(y == label)[::2]] = 1
    scores = np.empty(n)
    for k in (0, 1):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        signs = np.where(y[train], 1.0, -1.0)
        weight = np.where(y[train], 0.5 / y[train].mean(), 0.5 / (~y[train]).mean())
        inner = K[np.ix_(train, train)]
        factor = cho_factor(inner + np.diag(np.trace(inner) / len(train) / weight))
        offset = cho_solve(factor, np.ones(len(train)))
        a = cho_solve(factor, signs)
        b = a.sum() / offset.sum()
        scores[test] = K[np.ix_(test, train)] @ (a - b * offset) + b
        scores[test] /= scores[test].std() or 1.0
    return scores


def _auc(scores, y):
    """Return the area under the ROC curve and an upper bound on its standard error."""
    value = METRICS["auc"].of_scores(scores, y)
    return value, np.sqrt(max(value * (1.0 - value), 1e-4) / min(y.sum(), (~y).sum()))


def _products(X):
    """Return scalar products (n, n) of rows (n, D) less their mean."""
    Z = X - X.mean(axis=0)
    return Z @ Z.T


def _of_shape(K, y, wide=False):
    """Return sentences if scores of the kernel K (n, n) are not Gaussian or, unless that is known, not equally wide."""
    s = _ridge_scores(K, y)
    pos, neg = s[y], s[~y]
    found = []
    ratio = pos.std() / max(neg.std(), 1e-12)
    error = np.sqrt(0.5 / len(pos) + 0.5 / len(neg))
    if not wide and abs(np.log(ratio)) > max(np.log(1.5), 3.0 * error):
        wide, factor = ("positive", ratio) if ratio > 1.0 else ("negative", 1.0 / ratio)
        found.append(
            f"The scores of the {wide} class are {factor:.1f} times as wide as those of the other: "
            "the theory takes them as equally wide, and misjudges the trained threshold."
        )
    middle = 0.5 * (pos.mean() + neg.mean())
    seen = evaluate(s, np.where(y, 1, -1), middle, names=["ba"])["ba"]
    gap = 0.5 * (pos.mean() - neg.mean())
    told = 0.5 * (ndtr(gap / max(pos.std(), 1e-12)) + ndtr(gap / max(neg.std(), 1e-12)))
    error = 0.5 * np.sqrt(0.25 / len(pos) + 0.25 / len(neg))
    if abs(seen - told) > max(0.03, 3.0 * error):
        found.append(
            f"The scores are not Gaussian: midway between the classes {seen:.0%} are on their own side, "
            f"where Gaussian scores would have {told:.0%}."
        )
    return found


def _of_curvature(X, y):
    """Return a sentence if a classifier with a curved boundary separates the classes much better."""
    Z = X - X.mean(axis=0)
    squares = euclidean_distances(Z, squared=True)
    width = np.median(squares[:300, :300][np.triu_indices(min(len(Z), 300), 1)]) or 1.0
    linear, error = _auc(_ridge_scores(Z @ Z.T, y), y)
    curved, other = _auc(_ridge_scores(np.exp(-squares / width), y), y)
    if curved - linear > max(0.05, 2.0 * np.hypot(error, other)):
        return [
            f"The classes are not separated by a plane: a curved boundary reaches an AUC of {curved:.2f}, "
            f"a linear one {linear:.2f}. Consider another classifier: kernel='rbf' (--kernel rbf) asks for one."
        ]
    return []
