"""Tables of three classes and more: predicted and measured macro recall of machines against the rest."""

import time
import traceback

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier

from rbal.advice import advise

from ..tables import SEED, learner
from ..tables._sources import SOURCES, _cut, available, role_of
from ..tables._trials import FOLDS, encoder
from ._methods import asked
from ._trials import quiet

ROWS = 25  # smallest class that is kept
CLASSES = 3  # fewest that make a table
LARGE = 1_200  # rows above which a table has fewer splits
SPLITS = 3
RULES = {"as is": None, "class weights": "balanced"}  # class_weight of the machines at C = 1


def table_of_many(source):
    """Return columns and labels of the classes of a source that have rows enough; None if they are fewer than three."""
    X, labels = _cut(source)
    sizes = labels.value_counts()
    keep = labels.isin(sizes.index[sizes >= ROWS])
    if labels[keep].nunique() < CLASSES:
        return None
    return X[keep].reset_index(drop=True), labels[keep].to_numpy()


def cells_of_many(role, chosen=None):
    """Return the splits of all tables of a role, or of the sources that were chosen."""
    found = []
    for source in SOURCES:
        if role_of(source) != role or (chosen is not None and source not in chosen) or not available(source):
            continue
        table = table_of_many(source)
        if table is not None:
            count = SPLITS if len(table[1]) > LARGE else FOLDS
            found += [{"table": source, "fold": fold} for fold in range(count)]
    return found


def fold_of_many(source, fold):
    """Return training and test part of one fold, coded by the training part: (X, y), (X_test, y_test)."""
    X, y = table_of_many(source)
    seed = int(np.random.SeedSequence([SEED, *source.encode()]).generate_state(1)[0])
    train, test = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y))[fold]
    encode = encoder().fit(X.iloc[train])
    return tuple((encode.transform(X.iloc[part]), y[part]) for part in (train, test))


def many(rng, table, fold):
    """Predict and measure macro recall on one fold: at C = 1 as it is and with class weights, and as recommended.

    Where the advice fails it counts as one that knows nothing: it predicts, and reaches, the recall of a guess.
    """
    (X, y), (X_test, y_test) = fold_of_many(table, fold)
    seed, out = int(rng.integers(2**31)), {"rows": len(y), "classes": len(set(y)), "D": X.shape[1]}
    guess = 1.0 / len(set(y))
    with quiet():
        fixed = _advice_or_none(X, y, C=1.0, draws=2, random_state=seed)
        for name, weight in RULES.items():
            model = OneVsRestClassifier(learner().set_params(class_weight=weight)).fit(X, y)
            known = fixed is not None and (name, "trained") in fixed.table.index
            out[f"{name}: predicted"] = fixed.table.loc[(name, "trained"), "predicted"] if known else guess
            out[f"{name}: recall"] = macro_recall(model.predict(X_test), y_test)
            out[f"{name}: failed"] = not known
        begin = time.process_time()
        advice = _advice_or_none(X, y, random_state=seed, **asked({"C": "best", "train": "little"}))
        out["advice: cpu"] = time.process_time() - begin
        out |= dict.fromkeys(("advice: predicted", "advice: recall"), guess)
        out |= dict.fromkeys(("advice: low", "advice: high", "advice: C", "advice: moved"), float("nan"))
        out["advice: failed"] = advice is None
        if advice is not None:
            row = advice.table.loc[advice.best]
            out |= {f"advice: {name}": row[name] for name in ("predicted", "low", "high", "C")}
            out["advice: moved"] = advice.best[1] == "moved"
            out["advice: recall"] = macro_recall(advice.pipeline(random_state=seed).fit(X, y).predict(X_test), y_test)
    return {name: float(value) for name, value in out.items()}


def _advice_or_none(X, y, **options):
    """Return the advice, or None where no prediction converges; the cause is told."""
    try:
        return advise(X, y, progress=False, **options)
    except ValueError:
        traceback.print_exc()
        return None


def macro_recall(answers, y):
    """Return the mean recall over the classes of labels y (n,)."""
    return float(np.mean([np.mean(answers[y == label] == label) for label in np.unique(y)]))
