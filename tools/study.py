"""The study of chapter 15: what a linear SVM gains from each remedy on real tables, and what the theory foresaw.

    make study-tables                                                   (everything: about half an hour of one core)
    python tools/study.py --table "wine 1" --repeats 1 --stores _build/small --out _build/small

Each trial is one fold of a repeated, stratified cross-validation. ``measured`` trains every remedy on the training part
and tests it on the rest; ``foreseen`` gives the same training part to rbal.advise, and nothing else; ``widened`` does
so on the tables for design, for several sizes of the error that the theory itself makes. Results are written fold by
fold into _build/study and are not computed again; tables of them, and a list of all tables, go to book/_data.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd
import study_tables
from imblearn.over_sampling import SMOTE
from scipy.special import ndtr, ndtri
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from tqdm.auto import tqdm

import rbal
from rbal import RandomMixSampler, experiments, studies
from rbal.advice import _judgement as judgement
from rbal.advice import _table
from rbal.advice._remedies import Setting, evaluate
from rbal.moments._estimate import Fitter

SEED, REPEATS, FOLDS = 2026, 3, 5
STEPS = (0.25, 0.5, 0.75)  # mixings between under- and oversampling, as parts of the way in log c
RARE = 0.01  # levels of a category in a smaller share of the rows count as one
C = 1.0
DRAWS = 128  # behind the intervals of a prediction
LEVEL = 0.9  # of these
DIGIT = 1e-4  # the last one that is stored: a collapsed classifier is at one half to more digits than matter
ERRORS = (0.0, 0.15, 0.3, 0.45, 0.6)  # of the theory on real tables: sizes that are tried
STRATEGIES = ("as is", "undersampling", "oversampling", "best mix", "class weights")
ROWS = [(strategy, threshold) for strategy in STRATEGIES for threshold in ("trained", "moved")]  # of rbal.advise
PLACES = {  # of the remedies that do not depend on a prediction, among the designs of rbal.advise
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
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "book" / "_data"


def learner():
    """Linear SVM as scikit-learn has it by default, solved exactly: hinge loss, C = 1, free intercept."""
    return SVC(kernel="linear", C=C, cache_size=500)


def encoder():
    """What a user of a linear SVM does first: fill gaps, one-hot encode, standardise, drop what is constant."""
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
    """Training and test part of one fold, encoded by the training part: (X, y), (X_test, y_test).

    The same for every remedy. With ``minority`` the training part keeps that many positives at most.
    """
    table = study_tables.table(name)
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
    """Balanced accuracy of every remedy on one fold, and what may explain it."""
    (X, y), test = fold_of(table, repeat, fold, minority)
    ratio = np.sum(y < 0) / np.sum(y > 0)
    mixings = {f"mix {t:g}": (ratio**t - 1.0) / (ratio - 1.0) for t in STEPS}
    out = {"n_pos": int(np.sum(y > 0)), "n_neg": int(np.sum(y < 0)), "D": X.shape[1]}
    inner = StratifiedKFold(5, shuffle=True, random_state=_dice(rng))
    for name in ("as is", "undersampling", "oversampling", "class weights", *mixings):
        weight = weights(y, name, mixings.get(name), _dice(rng))
        clf = learner().fit(X, y, sample_weight=weight)
        scores = clf.decision_function(test[0])
        out[name] = accuracy(scores, test[1])
        if name in mixings:
            continue
        held_out = unseen(X, y, weight, inner)
        out[f"{name}, tuned"] = accuracy(scores, test[1], tuned(held_out, y))
        out[f"{name}, middle"] = accuracy(scores, test[1], middle(held_out, y))
        if name in ("as is", "oversampling"):
            out[f"{name}, train"] = accuracy(clf.decision_function(X), y)
            out[f"{name}, gauss"] = gaussian(held_out, y)
            out[f"{name}, held out"] = accuracy(held_out, y)
    smote = SMOTE(random_state=_dice(rng)).fit_resample(X, y)
    out["SMOTE"] = accuracy(learner().fit(*smote).decision_function(test[0]), test[1])
    return out


def foreseen(rng, table, minority, repeat, fold):
    """What rbal.advise says from the training part of one fold, and how the mixtures that it names fare."""
    (X, y), test = fold_of(table, repeat, fold, minority)
    advice = rbal.advise(X, y, C=C, loss="hinge", draws=DRAWS, level=LEVEL, random_state=_dice(rng), progress=False)
    out = {}
    for row in ROWS:
        predicted = advice.table.loc[row]
        out[_label(*row)] = predicted["predicted"]
        out |= {f"{_label(*row)}, {end}": predicted[end] for end in ("low", "high", "scatter")}
    out |= {"advised": ROWS.index(advice.best), "notes": len(advice.notes)}
    out["confidence"] = ("low", "moderate", "high").index(advice.confidence)
    inner = StratifiedKFold(5, shuffle=True, random_state=_dice(rng))
    for threshold in ("trained", "moved"):
        out[f"mixing, {threshold}"] = mixing = advice.table.loc[("best mix", threshold), "mixing"]
        out[f"measured, {threshold}"] = math.nan  # the best mixture is oversampling, which is measured already
        if mixing < 1.0:
            weight = weights(y, "best mix", mixing, _dice(rng))
            scores = learner().fit(X, y, sample_weight=weight).decision_function(test[0])
            cut = tuned(unseen(X, y, weight, inner), y) if threshold == "moved" else 0.0
            out[f"measured, {threshold}"] = accuracy(scores, test[1], cut)
    return out


def widened(rng, table, minority, repeat, fold):
    """Intervals of rbal.advise on one fold, for several sizes of the error of the theory."""
    (X, y), _ = fold_of(table, repeat, fold, minority)
    data = _table.from_arrays(X, y)
    setting = Setting(data.n_pos, data.n_neg, data.D, C, "hinge", "ba", (1.0, 1.0))
    fitter = Fitter(data.sample)
    drawn, errors = judgement.draw(fitter, DRAWS, _dice(rng))
    value = evaluate(fitter.fit(), setting).value
    out = {_label(*row): value[place] for row, place in PLACES.items()}
    for size in ERRORS:
        others = judgement.values(judgement.misjudged(drawn, size * errors), setting)
        for end, at in zip(("low", "high"), judgement.ends(value, others, LEVEL), strict=True):
            out |= {f"{_label(*row)}, {end} {size:g}": at[place] for row, place in PLACES.items()}
    return out


def weights(y, name, mixing, dice):
    """What a remedy makes of a training set, as sample weights: a row that is there twice has weight 2."""
    if name == "as is":
        return np.ones(len(y))
    if name == "class weights":
        return 0.5 * len(y) / np.where(y > 0, np.sum(y > 0), np.sum(y < 0))
    mixing = {"undersampling": 0.0, "oversampling": 1.0}.get(name, mixing)
    sampler = RandomMixSampler(mixing=mixing, random_state=dice)
    sampler.fit_resample(y[:, None], y)
    return np.bincount(sampler.sample_indices_, minlength=len(y)).astype(float)


def accuracy(scores, y, threshold=0.0):
    """Balanced accuracy."""
    return 0.5 * (np.mean(scores[y > 0] > threshold) + np.mean(scores[y < 0] <= threshold))


def gaussian(scores, y):
    """Balanced accuracy that normal scores would have, of the same mean and variance in each class."""
    z = [scores[y == label].mean() / scores[y == label].std() for label in (1, -1)]
    return 0.5 * (ndtr(z[0]) + ndtr(-z[1]))


def tuned(scores, y):
    """Threshold of the best balanced accuracy, midway between two scores."""
    order = np.argsort(scores)
    steps = np.where(y[order] > 0, -1.0 / np.sum(y > 0), 1.0 / np.sum(y < 0))
    gain = np.cumsum(steps)  # of a threshold above each score, over one below them all
    gain[np.flatnonzero(np.diff(scores[order]) == 0.0)] = -np.inf
    best = int(np.argmax(gain[:-1]))
    return 0.5 * (scores[order[best]] + scores[order[best + 1]])


def middle(scores, y):
    """Threshold midway between the class means."""
    return 0.5 * (scores[y > 0].mean() + scores[y < 0].mean())


def unseen(X, y, weight, split):
    """Scores of rows by classifiers that did not see them; a row of weight 0 is scored too."""
    return cross_val_predict(learner(), X, y, cv=split, method="decision_function", params={"sample_weight": weight})


def _label(strategy, threshold):
    """Name of a remedy in the results: a moved threshold was tuned on held-out scores."""
    return f"{strategy}, tuned" if threshold == "moved" else strategy


def _dice(rng):
    return int(rng.integers(2**31))


def cells(names, repeats):
    """Folds of all tables, with all positives and with few: tables that judge several times, those for design once."""
    roles = [("judge", 0), ("design", 0), *(("judge", repeat) for repeat in range(1, repeats))]
    return [
        {"table": name, "minority": minority, "repeat": repeat, "fold": fold}
        for role, repeat in roles
        for minority in (0, SCARCE)
        for name in names
        if study_tables.role(name) == role
        for fold in range(FOLDS)
    ]


def described(name):
    """What is known of a table beside its results: its role, its size, and how much wider the positives are.

    The width is the ratio of standard deviations, positives over negatives, of the scores that a ridge regression on
    the labels gives to held-out rows.
    """
    table = study_tables.table(name)
    X, split = encoder().fit_transform(table.X), StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    scores = cross_val_predict(RidgeClassifier(0.05 * len(X)), X, table.y, cv=split, method="decision_function")
    positive = table.y > 0
    return {
        "table": name,
        "role": study_tables.role(name),
        "rows": len(X),
        "positives": int(positive.sum()),
        "columns": table.X.shape[1],
        "features": X.shape[1],
        "width": round(float(scores[positive].std() / scores[~positive].std()), 3),
    }


def write(table, path, command):
    """Results fold by fold, four digits, under a header that says where they come from."""
    told = {name: table.attrs[name] for name in ("seed", "rbal", "numpy", "python", "started")}
    header = [f"Made by `{command}`: see tools/study.py.", ", ".join(f"{k} {v}" for k, v in told.items())]
    body = table.drop(columns=["trial", "seed", "seconds"]).round(4).to_csv(index=False)
    path.write_text("".join(f"# {line}\n" for line in header) + body)


def load(name, folder=RESULTS):
    """Stored results, "measured", "foreseen" or "widened", by table, minority, repeat and fold."""
    return pd.read_csv(folder / f"study_{name}.csv", comment="#").set_index(FOLD)


def listed(folder=RESULTS):
    """Stored list of the tables, by name."""
    return pd.read_csv(folder / "study_tables.csv", index_col="table")


def remedies(measured, foreseen):
    """Balanced accuracy of every remedy and of the advice followed, fold by fold."""
    found = measured[list(REMEDIES)].copy()
    found["best mix"] = foreseen["measured, trained"].fillna(found["oversampling"])
    found["best mix, tuned"] = foreseen["measured, moved"].fillna(found["oversampling, tuned"])
    column = [found.columns.get_loc(_label(*ROWS[row])) for row in foreseen["advised"].astype(int)]
    found["advice"] = found.to_numpy()[np.arange(len(found)), column]
    return found


def centre(found):
    """Mean over the folds of each table, and its standard error."""
    parts = found.groupby(level=["table", "minority"], sort=False)
    return parts.mean(), parts.std().div(np.sqrt(parts.size()), axis=0)


def holds(predicted, low, high, measured, error=0.0):
    """Whether an interval holds what was measured, which has a standard error of its own."""
    side = np.where(measured > predicted, high - predicted, predicted - low)
    return np.hypot(side, ndtri(0.5 + 0.5 * LEVEL) * error) + DIGIT >= np.abs(measured - predicted)


def covered(found, foreseen):
    """Which intervals hold the mean of their table, one row a fold and remedy: as they are told, or of noise alone.

    ``told`` and ``noise`` allow for the standard error of that mean, ``strictly`` does not.
    """
    means, errors = (part.loc[foreseen.index.droplevel(["repeat", "fold"])] for part in centre(found))
    parts = []
    for label in (_label(*row) for row in ROWS):
        at, mean, error = foreseen[label], means[label].to_numpy(), errors[label].to_numpy()
        low, high = foreseen[f"{label}, low"], foreseen[f"{label}, high"]
        reach = ndtri(0.5 + 0.5 * LEVEL) * foreseen[f"{label}, scatter"]
        columns = {"remedy": label, "width": high - low, "width of noise": 2.0 * reach}
        columns |= {"told": holds(at, low, high, mean, error), "strictly": holds(at, low, high, mean)}
        columns["noise"] = holds(at, at - reach, at + reach, mean, error)
        parts.append(pd.DataFrame(columns, foreseen.index))
    return pd.concat(parts)


def model_error(measured, widened):
    """Size of the theory's error at which as many intervals as they claim hold what was measured, all folds alike.

    For all positives and for few: (rows of the rarer class, size).
    """
    return [
        _model_error(measured, widened.xs(minority, level="minority", drop_level=False)) for minority in (SCARCE, 0)
    ]


def _model_error(measured, widened):
    rows = measured.loc[widened.index, "n_pos"].groupby(level="table").mean().median()
    means, errors = (part.loc[widened.index.droplevel(["repeat", "fold"])] for part in centre(measured))
    sizes = np.linspace(ERRORS[0], ERRORS[-1], 121)
    shares = [
        np.mean([
            holds(widened[label], *_between(widened, label, size), means[label].to_numpy(), errors[label].to_numpy())
            for label in (_label(*row) for row in PLACES)
        ])
        for size in sizes
    ]  # fmt: skip
    return rows, float(np.interp(LEVEL, shares, sizes))


def _between(widened, label, size):
    """Ends of the intervals for a size between two of those that were tried."""
    k = min(int(np.searchsorted(ERRORS, size, side="right")), len(ERRORS) - 1)
    part = (size - ERRORS[k - 1]) / (ERRORS[k] - ERRORS[k - 1])
    ends = ([widened[f"{label}, {end} {error:g}"] for error in ERRORS[k - 1 : k + 1]] for end in ("low", "high"))
    return [(1.0 - part) * left + part * right for left, right in ends]


def regrets(found):
    """How far each rule is behind the best of them on every table, and the standard error of that over the folds."""
    rows = []
    for (table, minority), part in found.groupby(level=["table", "minority"], sort=False):
        best = part[part.mean().idxmax()]
        for rule in part:
            behind = best - part[rule]
            rows.append((table, minority, rule, behind.mean(), behind.std() / np.sqrt(len(part))))
    return pd.DataFrame(rows, columns=["table", "minority", "rule", "regret", "error"])


def versus(means, rule, others):
    """What a rule gains over each of several others, one row each: a paired test with errors clustered by source.

    ``means`` has one row a table and one column a rule. ``p_holm`` is corrected for the number of the others. ``least``
    and ``most`` are the mean gain without the source that speaks most for the rule, and most against it, which are
    named; ``worst`` is the gain on the table where it is least.
    """
    sources = means.index.get_level_values("table").map(study_tables.source)
    rows = {}
    for other in others:
        gain = means[rule] - means[other]
        without = pd.Series({name: gain[sources != name].mean() for name in sources.unique()})
        rows[other] = {
            **studies.clustered(gain, sources)._asdict(),
            "least": without.min(),
            "without": without.idxmin(),
            "most": without.max(),
            "without it": without.idxmax(),
            "worst": gain.min(),
        }
    table = pd.DataFrame.from_dict(rows, orient="index")
    table.insert(table.columns.get_loc("p") + 1, "p_holm", studies.holm(table["p"].to_numpy(float)))
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="append", help="only this one (may be given several times)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of the cross-validation, %(default)s by default")
    parser.add_argument("--n-jobs", type=int, default=1, help="workers")
    parser.add_argument("--stores", type=Path, default=ROOT / "_build" / "study", help="folder of what is done already")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the three tables of results")
    options = parser.parse_args()
    options.stores.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    names = options.table or study_tables.tables()
    tables = pd.DataFrame([described(name) for name in tqdm(names, desc="tables")])
    tables.to_csv(options.out / "study_tables.csv", index=False)
    grid = cells(names, options.repeats)
    design = [cell for cell in grid if study_tables.role(cell["table"]) == "design"]
    for trial, part in ((measured, grid), (widened, design), (foreseen, grid)):
        if part:
            store = options.stores / f"{trial.__name__}.jsonl"
            table = experiments.run(trial, part, trials=1, seed=SEED, store=store, n_jobs=options.n_jobs)
            write(table, options.out / f"study_{trial.__name__}.csv", "make study-tables")
    if design:
        for rows, size in model_error(load("measured", options.out), load("widened", options.out)):
            told = judgement.model_error(rows)
            print(f"error of the theory on tables for design, {rows:.0f} positives: {size:.3f}; advise has {told:.3f}")


if __name__ == "__main__":
    import study  # workers know the functions of a module by name, those of a script they do not

    study.main()
