"""Trials of the study on tables: measure and predict every remedy on one fold of a repeated cross-validation."""

import math

import numpy as np
from imblearn.over_sampling import SMOTE
from scipy.special import ndtr
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from rbal.advice import advise
from rbal.advice import internal as judgement
from rbal.metrics import evaluate
from rbal.moments.internal import Fitter
from rbal.samplers import RandomMixSampler

from ._sources import table_of

SEED, FOLDS = 2026, 5
STEPS = (0.25, 0.5, 0.75)  # mixings between under- and oversampling, as fractions of log c
RARE = 0.01  # levels that a smaller share of the rows has are merged into one
C = 1.0
DRAWS = 128  # draws behind the intervals of a prediction
LEVEL = 0.9  # level of the intervals
ERRORS = (0.0, 0.15, 0.3, 0.45, 0.6)  # sizes of the theory's error that are tried
STRATEGIES = ("as is", "undersampling", "oversampling", "best mix", "class weights")
ROWS = [(strategy, threshold) for strategy in STRATEGIES for threshold in ("trained", "moved")]  # of rbal.advise
PLACES = {  # indices, among the designs of rbal.advise, of the remedies that do not depend on a prediction
    (strategy, threshold): (k, j)
    for strategy, j in (("as is", 0), ("undersampling", 2), ("oversampling", -1), ("class weights", 1))
    for k, threshold in enumerate(("trained", "moved"))
}
SCARCE = 25  # positives of a training set in the second half of the study
REMEDIES = (
    "as is", "as is, tuned", "undersampling", "undersampling, tuned", "oversampling", "oversampling, tuned",
    "class weights", "class weights, tuned", *(f"mix {t:g}" for t in STEPS), "SMOTE",
)  # fmt: skip
FOLD = ["table", "minority", "repeat", "fold"]


def learner():
    """Return an exactly solved linear SVM with the defaults of scikit-learn: hinge loss, C = 1, free intercept."""
    return SVC(kernel="linear", C=C, cache_size=500)


def encoder():
    """Return what users of a linear SVM apply first: impute, one-hot encode, standardise, drop constant columns."""
    text = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="missing"),
        OneHotEncoder(min_frequency=RARE, handle_unknown="infrequent_if_exist", sparse_output=False),
    )
    columns = make_column_transformer(
        (SimpleImputer(strategy="median"), make_column_selector(dtype_include="number")),
        (text, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, VarianceThreshold(), StandardScaler())


def fold_of(name, repeat, fold, minority=0):
    """Return training and test part of one fold, encoded by the training part: (X, y), (X_test, y_test).

    They are the same for every remedy. With ``minority`` the training part keeps at most that many positives.
    """
    table = table_of(name)
    seed = np.random.SeedSequence([SEED, repeat, *name.encode()])
    split = StratifiedKFold(FOLDS, shuffle=True, random_state=int(seed.generate_state(1)[0]))
    train, test = list(split.split(table.X, table.y))[fold]
    if minority:
        positive = np.flatnonzero(table.y[train] > 0)
        dropped = np.random.default_rng(seed.spawn(fold + 1)[fold]).permutation(positive)[minority:]
        train = np.delete(train, dropped)
    encode = encoder().fit(table.X.iloc[train])
    parts = (encode.transform(table.X.iloc[part]) for part in (train, test))
    return tuple(zip(parts, (table.y[train], table.y[test]), strict=True))


def measured(rng, table, minority, repeat, fold):
    """Measure the balanced accuracy of every remedy on one fold, and numbers that may explain it."""
    (X, y), test = fold_of(table, repeat, fold, minority)
    ratio = np.sum(y < 0) / np.sum(y > 0)
    mixings = {f"mix {t:g}": (ratio**t - 1.0) / (ratio - 1.0) for t in STEPS}
    out = {"n_pos": int(np.sum(y > 0)), "n_neg": int(np.sum(y < 0)), "D": X.shape[1]}
    inner = StratifiedKFold(5, shuffle=True, random_state=_dice(rng))
    for name in ("as is", "undersampling", "oversampling", "class weights", *mixings):
        weight = weights(y, name, mixings.get(name), _dice(rng))
        clf = learner().fit(X, y, sample_weight=weight)
        scores = clf.decision_function(test[0])
        out[name] = evaluate(scores, test[1])["ba"]
        if name in mixings:
            continue
        held_out = unseen(X, y, weight, inner)
        out[f"{name}, tuned"] = evaluate(scores, test[1], tuned(held_out, y))["ba"]
        out[f"{name}, middle"] = evaluate(scores, test[1], middle(held_out, y))["ba"]
        if name in ("as is", "oversampling"):
            out[f"{name}, train"] = evaluate(clf.decision_function(X), y)["ba"]
            out[f"{name}, gauss"] = gaussian(held_out, y)
            out[f"{name}, held out"] = evaluate(held_out, y)["ba"]
    smote = SMOTE(random_state=_dice(rng)).fit_resample(X, y)
    out["SMOTE"] = evaluate(learner().fit(*smote).decision_function(test[0]), test[1])["ba"]
    return out


def foreseen(rng, table, minority, repeat, fold):
    """Return what rbal.advise predicts from the training part of one fold, and measure the mixtures that it names."""
    (X, y), test = fold_of(table, repeat, fold, minority)
    first = {"kernel": "linear", "moments": "pooled", "train": "none"}  # as in the first edition of the study
    advice = advise(X, y, C=C, loss="hinge", draws=DRAWS, level=LEVEL, random_state=_dice(rng), progress=False, **first)
    out = {}
    for row in ROWS:
        predicted = advice.table.loc[row]
        out[label_of(*row)] = predicted["predicted"]
        out |= {f"{label_of(*row)}, {end}": predicted[end] for end in ("low", "high", "scatter")}
    out |= {"advised": ROWS.index(advice.best), "notes": len(advice.notes)}
    out["confidence"] = ("low", "moderate", "high").index(advice.confidence)
    inner = StratifiedKFold(5, shuffle=True, random_state=_dice(rng))
    for threshold in ("trained", "moved"):
        out[f"mixing, {threshold}"] = mixing = advice.table.loc[("best mix", threshold), "mixing"]
        out[f"measured, {threshold}"] = math.nan  # oversampling is measured already
        if mixing < 1.0:
            weight = weights(y, "best mix", mixing, _dice(rng))
            scores = learner().fit(X, y, sample_weight=weight).decision_function(test[0])
            cut = tuned(unseen(X, y, weight, inner), y) if threshold == "moved" else 0.0
            out[f"measured, {threshold}"] = evaluate(scores, test[1], cut)["ba"]
    return out


def widened(rng, table, minority, repeat, fold):
    """Return the intervals of rbal.advise on one fold, for several sizes of the theory's error."""
    (X, y), _ = fold_of(table, repeat, fold, minority)
    data = judgement.from_arrays(X, y)
    setting = judgement.Setting(data.n_pos, data.n_neg, data.D, C, "hinge", "ba", (1.0, 1.0))
    fitter = Fitter(data.sample)
    drawn, errors = judgement.draw(fitter, DRAWS, _dice(rng))
    value = judgement.evaluate(fitter.fit(), setting).value
    out = {label_of(*row): value[place] for row, place in PLACES.items()}
    for size in ERRORS:
        others = judgement.values(judgement.misjudged(drawn, size * errors), setting)
        for end, at in zip(("low", "high"), judgement.ends(value, others, LEVEL), strict=True):
            out |= {f"{label_of(*row)}, {end} {size:g}": at[place] for row, place in PLACES.items()}
    return out


def weights(y, name, mixing, dice):
    """Return the weights (n,) that a remedy gives to rows with labels y (n,) of ±1; a row that is taken twice has 2."""
    if name == "as is":
        return np.ones(len(y))
    if name == "class weights":
        return 0.5 * len(y) / np.where(y > 0, np.sum(y > 0), np.sum(y < 0))
    mixing = {"undersampling": 0.0, "oversampling": 1.0}.get(name, mixing)
    sampler = RandomMixSampler(mixing=mixing, random_state=dice)
    sampler.fit_resample(y[:, None], y)
    return np.bincount(sampler.sample_indices_, minlength=len(y)).astype(float)


def gaussian(scores, y):
    """Return the balanced accuracy of Gaussian scores with the mean and variance of each class; scores, y are (n,)."""
    z = [scores[y == label].mean() / scores[y == label].std() for label in (1, -1)]
    return 0.5 * (ndtr(z[0]) + ndtr(-z[1]))


def tuned(scores, y):
    """Return the threshold of the best balanced accuracy, midway between two scores; scores and labels ±1 are (n,).

    Of equally good thresholds it is the lowest, since the stored results were made so; the function
    :func:`rbal.metrics.best_threshold` takes the widest gap.
    """
    order = np.argsort(scores)
    steps = np.where(y[order] > 0, -1.0 / np.sum(y > 0), 1.0 / np.sum(y < 0))
    gain = np.cumsum(steps)  # of a threshold above each score, over one below them all
    gain[np.flatnonzero(np.diff(scores[order]) == 0.0)] = -np.inf
    best = int(np.argmax(gain[:-1]))
    return 0.5 * (scores[order[best]] + scores[order[best + 1]])


def middle(scores, y):
    """Return the threshold midway between the class means of the scores."""
    return 0.5 * (scores[y > 0].mean() + scores[y < 0].mean())


def unseen(X, y, weight, split):
    """Return scores (n,) of rows X (n, D) by classifiers that did not see them; rows of weight 0 are scored too."""
    return cross_val_predict(learner(), X, y, cv=split, method="decision_function", params={"sample_weight": weight})


def label_of(strategy, threshold):
    """Return the name of a remedy in the results, where a moved threshold was tuned on held-out scores."""
    return f"{strategy}, tuned" if threshold == "moved" else strategy


def _dice(rng):
    return int(rng.integers(2**31))
