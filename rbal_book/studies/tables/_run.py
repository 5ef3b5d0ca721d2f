"""Run the study on tables: list its tables and folds, and write the results."""

from pathlib import Path

import pandas as pd
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from tqdm.auto import tqdm

from rbal import experiments
from rbal.advice import internal as judgement

from .._stored import RESULTS, WORK, write
from ._analysis import load, model_error
from ._sources import names, role_of, table_of
from ._trials import FOLDS, SCARCE, SEED, encoder, foreseen, measured, widened

OPTIONS = {
    "--table": {"action": "append", "help": "only this one (may be given several times)"},
    "--repeats": {"type": int, "help": "of the cross-validation (%(default)s)"},
    "--n-jobs": {"type": int, "help": "workers (%(default)s)"},
    "--stores": {"type": Path, "help": "folder of what is done already (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
}


def run(table=None, repeats=3, n_jobs=1, stores=WORK / "tables", out=RESULTS):
    """Run what is missing of the study, on all tables or on those that are named, and write its results."""
    stores.mkdir(parents=True, exist_ok=True)
    chosen = table or names()
    write(out / "tables" / "listed.csv", pd.DataFrame([described(name) for name in tqdm(chosen, desc="tables")]))
    grid = cells(chosen, repeats)
    design = [cell for cell in grid if role_of(cell["table"]) == "design"]
    for trial, part in ((measured, grid), (widened, design), (foreseen, grid)):
        if part:
            store = stores / f"{trial.__name__}.jsonl"
            keep(experiments.run(trial, part, trials=1, seed=SEED, store=store, n_jobs=n_jobs), trial.__name__, out)
    if design:
        for rows, size in model_error(load("measured", out), load("widened", out)):
            told = judgement.model_error(rows)
            print(f"error of the theory on tables for design, {rows:.0f} positives: {size:.3f}; advise has {told:.3f}")


def keep(table, name, out):
    """Write results with four digits, one row per fold, under a header that says where they come from."""
    told = {key: table.attrs[key] for key in ("seed", "rbal", "numpy", "python", "started")}
    header = [
        "Made by `make study-tables`: see rbal_book/studies/tables.",
        ", ".join(f"{k} {v}" for k, v in told.items()),
    ]
    write(out / "tables" / f"{name}.csv", table.drop(columns=["trial", "seed", "seconds"]).round(4), header)


def cells(names, repeats):
    """Return the folds of all tables, with all positives and with few; judging tables are repeated, others are not."""
    roles = [("judge", 0), ("design", 0), *(("judge", repeat) for repeat in range(1, repeats))]
    return [
        {"table": name, "minority": minority, "repeat": repeat, "fold": fold}
        for role, repeat in roles
        for minority in (0, SCARCE)
        for name in names
        if role_of(name) == role
        for fold in range(FOLDS)
    ]


def described(name):
    """Describe a table: its role, its size, and how much wider the positives are.

    The width is the ratio of standard deviations, positives over negatives, of the scores that a ridge regression on
    the labels gives to held-out rows.
    """
    table = table_of(name)
    X, split = encoder().fit_transform(table.X), StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    scores = cross_val_predict(RidgeClassifier(0.05 * len(X)), X, table.y, cv=split, method="decision_function")
    positive = table.y > 0
    return {
        "table": name,
        "role": role_of(name),
        "rows": len(X),
        "positives": int(positive.sum()),
        "columns": table.X.shape[1],
        "features": X.shape[1],
        "width": round(float(scores[positive].std() / scores[~positive].std()), 3),
    }
