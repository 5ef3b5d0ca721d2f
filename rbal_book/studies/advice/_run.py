"""Run the second edition on the tables of one role, or go on with it."""

from pathlib import Path

from rbal import experiments

from .._stored import RESULTS, WORK, write
from ..tables import SEED, listed, source_of
from ..tables import load as load_first
from ..tables._sources import SOURCES, available, role_of
from . import _analysis as analysis
from ._many import cells_of_many, many
from ._trials import cells, compared, foreseen

OPTIONS = {
    "--tables": {"choices": ("design", "judge"), "help": "role of the tables to run on (%(default)s)"},
    "--table": {"action": "append", "help": "only this one of them (may be given several times)"},
    "--kind": {"choices": ("compared", "foreseen", "many"), "help": "only this kind of trial (all)"},
    "--splits": {"type": int, "help": "at most so many of each table (all)"},
    "--n-jobs": {"type": int, "help": "workers (%(default)s)"},
    "--stores": {"type": Path, "help": "folder of what is done already (%(default)s)"},
    "--out": {"type": Path, "help": "folder of results (that of the package)"},
}
DIGITS = 5


def run(tables="design", table=None, kind=None, splits=None, n_jobs=1, stores=WORK / "advice", out=RESULTS):
    """Run what is missing on the tables of a role, write the results, and print what they say.

    Parameters
    ----------
    tables : {"design", "judge"}
        Role of the tables.
    table : list of str, optional
        Only these of them; by default all. Tables of two classes are named by source and positive class, those of many
        classes by their source.
    kind : {"compared", "foreseen", "many"}, optional
        Only this kind of trial: all rules, predictions of the first edition's machines, or tables of many classes.
    splits : int, optional
        At most so many splits of each table.
    n_jobs : int
        Workers.
    stores, out : path
        Folders of what is done already, and of results.
    """
    complete = table is None and splits is None
    if tables == "judge" and complete and (out / "advice" / f"judge-{kind or 'compared'}.csv").exists():
        raise SystemExit("the tables that judge were run already, and are run once: see advice/judge-*")
    stores.mkdir(parents=True, exist_ok=True)
    kinds = {compared: cells(two_classes(tables, table)), foreseen: cells(two_classes(tables, table))}
    kinds[many] = cells_of_many(tables, table)
    for trial, grid in kinds.items():
        if kind not in (None, trial.__name__):
            continue
        grid = [cell for cell in grid if splits is None or _number(cell) < splits]
        if grid:
            store = stores / f"{tables}-{trial.__name__}.jsonl"
            found = experiments.run(trial, grid, trials=1, seed=SEED, store=store, n_jobs=n_jobs)
            keep(found, f"{tables}-{trial.__name__}", out)
    tell(tables, out)


def two_classes(role, chosen=None):
    """Return the names of the tables of a role, or those of them that were chosen."""
    known = [name for name in listed().index if role_of(name) == role]
    found = known if chosen is None else [name for name in known if name in chosen]
    missing = sorted({source_of(name) for name in found if not available(source_of(name))})
    if missing:
        raise SystemExit(f"packages of {', '.join(missing)} are not installed: make study-advice fetches them")
    sources = [source for source in SOURCES if role_of(source) == role]
    wrong = set(chosen or ()) - {*known, *sources}
    if wrong:
        raise SystemExit(f"there is no table {sorted(wrong)[0]!r} for {role}: there are {', '.join(known)}")
    return found


def keep(found, name, out):
    """Write results, one row per split, under a header that says where they come from."""
    told = {key: found.attrs[key] for key in ("seed", "rbal", "numpy", "python", "started")}
    header = [
        "Made by `make study-advice`: see rbal_book/studies/advice.",
        ", ".join(f"{k} {v}" for k, v in told.items()),
    ]
    table = found.drop(columns=["trial", "seed", "seconds"]).round(DIGITS)
    write(out / "advice" / f"{name}.csv", table, header)


def tell(role, out):
    """Print the comparisons, the primary hypotheses and the goals, as far as there are results for them."""
    classes = analysis.load_many(role, out)
    if classes is not None:
        print(f"mean |error| of macro recall, many classes\n{analysis.recall_errors(classes).round(4).to_string()}")
    try:
        results, told = analysis.load(role, "compared", out), analysis.load(role, "foreseen", out)
    except ValueError:
        return
    spent = analysis.metric(results, "cpu").mean()
    print(f"mean balanced accuracy and CPU seconds\n{_both(results, spent).round(4).to_string()}")
    sources = {source_of(name) for name in results.index.unique("table")}
    if len(sources) < 2 or len(results.index.unique("minority")) < 2:
        return
    columns = ["mean", "se", "low", "high", "p", "p_holm", "least", "without", "worst"]
    print(f"advice less others\n{analysis.compared(results)[columns].round(4).to_string()}")
    first, measured = load_first("foreseen"), load_first("measured")
    off = analysis.errors(told, first, measured)
    print(f"primary hypotheses\n{analysis.primary(results, off).round(4).to_string()}")
    print(f"goals\n{analysis.goals(results, told, first, measured, classes).round(4).to_string()}")


def _both(results, spent):
    """Return the mean balanced accuracy over tables in each setting, beside the mean CPU seconds."""
    ba = analysis.metric(results).groupby(level=["minority", "table"]).mean().groupby(level="minority").mean().T
    return ba.assign(cpu=spent)


def _number(cell):
    return 5 * cell.get("repeat", 0) + cell["fold"]
