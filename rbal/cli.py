"""The command ``rbal``.

Exit codes: 0 advice was given, or all is compiled; 1 the table or its file cannot be used, compiled code cannot be
kept, or what is printed or the page cannot be written; 2 wrong usage; 3 with ``--check``, theory and data disagree (the
advice is printed all the same); 130 interrupted.
"""

import argparse
import contextlib
import os
import sys

from ._support.extras import needs
from ._support.streams import (
    check_page,
    complain,
    fitting_json,
    in_utf8,
    interrupts_wait,
    open_streams,
    silence,
    write_page,
)

OK, BAD_INPUT, USAGE, DISAGREE, INTERRUPTED = 0, 1, 2, 3, 130


EPILOG = """\
examples:
  rbal advise table.csv --label sick --positive yes
  rbal advise table.csv --label sick --kernel linear
  rbal advise table.csv --label sick --metric f1 --at-precision 0.9
  rbal advise table.csv --label sick --C 1 --train none
  zcat table.csv.gz | rbal advise - --label sick
  rbal advise table.csv --label sick --na -999 unknown --drop patient
  rbal advise tabelle.csv --label krank --sep ';' --decimal , --thousands .
  rbal advise table.parquet --label sick --keep year --check --html report.html

The separator, marks of decimals and thousands, words for missing values and a saved
index are recognised, and notes say so; these options overrule what was recognised.

Exit codes: 0 advice given; 1 the table cannot be used; 2 wrong usage; 3 --check found
that theory and data disagree."""


def seed(text):
    """Parse a seed from the command line."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer >= 0, got {text!r}")
    return int(text)


def positive(text):
    """Parse a number of processes from the command line."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be an integer > 0, got {text!r}")
    return int(text)


def ridges(text):
    """Parse C from the command line: a number, numbers with commas between them, or the word "best"."""
    if text == "best":
        return text
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, numbers with commas, or best, got {text!r}") from None
    return values if len(values) > 1 else values[0]


def share(text):
    """Parse a share from the command line."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must be a number between 0 and 1, got {text!r}")
    return value


class Names:
    """Names of records, looked up only when one is given or listed: for anything else the command imports nothing."""

    def __init__(self, of):
        self.of = of

    def __iter__(self):
        return iter(self.of())

    def __contains__(self, name):
        return name in self.of()


def losses():
    """Names of the losses that can be trained."""
    from .losses import trained

    return trained()


def metrics():
    """Names of the metrics that can be optimised."""
    from .metrics.internal import goals

    return goals()


def steps():
    """Names of what a warm-up compiles."""
    from .warmup import STEPS

    return tuple(step.name for step in STEPS)


def parser():
    """Return the parser of the command line."""
    from . import __version__

    main = argparse.ArgumentParser(prog="rbal", description="Learning from imbalanced classes.")
    main.add_argument("--version", action="version", version=f"rbal {__version__}")
    commands = main.add_subparsers(dest="command", required=True, metavar="command")
    _add_advise(commands)
    _add_warmup(commands)
    return main


def _add_advise(commands):
    parser = commands.add_parser(
        "advise",
        help="what to do with an imbalanced table",
        description="Predict what a linear classifier would score on a table with two classes or more under\n"
        "each remedy for their imbalance, and recommend one.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=advise)
    add = parser.add_argument
    add("table", help="CSV file with a header (also .gz), or Parquet; - for a CSV on standard input")
    add("--label", required=True, metavar="COLUMN", help="column with the labels, two or more")
    add("--positive", metavar="LABEL", help="label of the positive class (the rarer one)")
    add("--metric", default="ba", choices=Names(metrics), metavar="NAME", help="what counts: %(choices)s (ba)")
    add("--costs", nargs=2, type=float, metavar=("MISS", "ALARM"), help="costs of the errors, with --metric cost")
    _add_classifier(add)
    add("--categorical", nargs="+", default=[], metavar="COLUMN", help="columns of numbers that are categories")
    add("--drop", nargs="+", default=[], metavar="COLUMN", help="columns to leave out")
    add(
        "--keep",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="columns that are features although they look like an index",
    )
    add("--no-standardize", action="store_true", help="leave the scale of the columns as it is")
    add("--sep", help="separator of the CSV file (found from the header)")
    add("--encoding", help="of the CSV file (utf-8)")
    add("--decimal", metavar="MARK", help="decimal mark of numbers in the CSV file, . or , (recognised)")
    add("--thousands", metavar="MARK", help="mark of thousands, one of , . ' or a space (recognised)")
    add(
        "--na",
        nargs="+",
        default=[],
        metavar="WORD",
        help="words for missing values, beside NA, null, ? and their like",
    )
    add("--at-precision", type=share, metavar="SHARE", help="also say which threshold has this precision")
    add("--at-recall", type=share, metavar="SHARE", help="also say which threshold has this recall")
    add(
        "--train",
        default="little",
        choices=("none", "little", "check"),
        help="nothing; as much as gives the level of the predictions in a second or two; or every "
        "remedy, to see whether theory and data agree: %(choices)s (little)",
    )
    add("--check", action="store_true", help="the same as --train check")
    add("--folds", type=int, default=5, help="of the check (5)")
    add("--repeats", type=int, default=4, help="of the check (4)")
    add("--jobs", type=int, help="workers of the check (all cores)")
    add("--seed", type=seed, default=0, help="of everything random (0)")
    add("--json", action="store_true", help="print JSON instead of text")
    add("--html", metavar="FILE", help="also write a report as one HTML page")
    add("--quiet", action="store_true", help="no progress bars, no word on what is waited for")


def _add_classifier(add):
    """Add the options of the classifier."""
    add(
        "--C",
        type=ridges,
        default="best",
        help="inverse ridge, as in scikit-learn: a number, several with commas between them, "
        "or best, to be chosen for every remedy (best)",
    )
    add("--kernel", default="best", choices=("best", "linear", "rbf"), help="of the classifier: %(choices)s (best)")
    add(
        "--moments",
        default="auto",
        choices=("auto", "width", "pooled"),
        help="of the classes: one covariance up to a width of each, or one for both: %(choices)s (auto)",
    )
    add("--loss", default="hinge", choices=Names(losses), metavar="NAME", help="of the classifier: %(choices)s (hinge)")


def _add_warmup(commands):
    parser = commands.add_parser(
        "warmup",
        help="compile everything once, so that no first call waits",
        description="Compile everything once, in several processes, into numba's cache. What is there already is\n"
        "not compiled again.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=warmup)
    add = parser.add_argument
    add("--only", nargs="+", choices=Names(steps), metavar="STEP", help="of %(choices)s (all of them)")
    add("--jobs", type=positive, help="processes at a time (as many as cores)")
    add("--native", action="store_true", help="compile also what came compiled for many CPUs, for this one")
    add("--quiet", action="store_true", help="no progress bar")


def main(arguments=None):
    """Run the command and return its exit code."""
    open_streams()
    try:
        try:
            with interrupts_wait():
                chosen = parser().parse_args(arguments)
            chosen.words = sys.argv[1:] if arguments is None else list(map(str, arguments))
            return chosen.run(chosen)
        finally:
            sys.stdout.flush()  # errors of writing are raised here, not when Python ends
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except OSError as error:
        silence()
        if isinstance(error, BrokenPipeError):  # the reader of our output has gone
            return OK
        complain(f"standard output cannot be written: {error.strerror or error}")
        return BAD_INPUT


def advise(chosen):
    """Run ``rbal advise`` and return its exit code."""
    with interrupts_wait():
        from .advice import advise_file
        from .advice.internal import clean

    shown = not chosen.quiet and sys.stderr.isatty()
    for name in ("label", "positive", "categorical", "drop", "keep", "na"):
        setattr(chosen, name, in_utf8(getattr(chosen, name)))
    try:
        if chosen.html is not None:
            with needs("plot", "--html"):
                import matplotlib  # noqa: F401
            check_page(chosen.html, chosen.table)
        with compilation_reported(shown), table_path(chosen.table) as table:
            advice = advise_file(
                table, chosen.label, chosen.metric, C=chosen.C, kernel=chosen.kernel, moments=chosen.moments,
                loss=chosen.loss, costs=chosen.costs, positive=chosen.positive,
                categorical=chosen.categorical or "auto", drop=chosen.drop, keep=chosen.keep,
                standardize=not chosen.no_standardize, sep=chosen.sep, encoding=chosen.encoding,
                decimal=chosen.decimal, thousands=chosen.thousands, na=chosen.na, train=chosen.train,
                check=chosen.check, folds=chosen.folds, repeats=chosen.repeats, n_jobs=chosen.jobs,
                random_state=chosen.seed, progress=shown,
            )  # fmt: skip
        if chosen.table == "-":
            advice.data.source = advice.data.source._replace(path=None)  # the file is gone
        if advice.many and (chosen.at_precision is not None or chosen.at_recall is not None):
            raise ValueError(f"--at-precision and --at-recall go with two classes, got {len(advice.data.classes)}")
        page = None if chosen.html is None else advice.to_html()
    except (ValueError, OSError, MemoryError, ImportError) as error:
        message = "not enough memory: give fewer rows or columns" if isinstance(error, MemoryError) else str(error)
        complain(clean(" ".join(message.split())))
        return BAD_INPUT
    unwritten = None if page is None else write_page(chosen.html, page)
    print(fitting_json(printed(advice, chosen)) if chosen.json else printed(advice, chosen), flush=True)
    if unwritten is not None:
        complain(clean(unwritten))
        return BAD_INPUT
    return DISAGREE if advice.agrees is False else OK


def printed(advice, chosen):
    """Return what is printed: JSON, or text with the thresholds of the options --at-precision and --at-recall."""
    from .advice import internal

    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if advice.many:
        return advice.to_json() if chosen.json else internal.many_text(advice, bold=bold)
    goals = {"precision": chosen.at_precision, "recall": chosen.at_recall}
    goals = {name: value for name, value in goals.items() if value is not None}
    if chosen.json:
        thresholds = {f"at_{name}": internal.numbers(advice.threshold_for(**{name: v})) for name, v in goals.items()}
        return internal.to_json(advice, **thresholds)
    rates = [internal.rate_sentence(advice, **{name: value}) for name, value in goals.items()]
    if not advice.whole:
        return "\n".join([internal.text(advice), *map(internal.fold, rates)])
    command = internal.next_command(chosen.words, advice)
    return internal.whole_text(advice, command, rates=rates, bold=bold)


@contextlib.contextmanager
def table_path(table):
    """Yield the path of a table: itself or, for -, a file that holds standard input as long as the block runs."""
    if table != "-":
        yield table
        return
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="rbal-") as folder:
        path = os.path.join(folder, "standard input")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        try:
            yield path
        except (ValueError, OSError) as error:
            raise ValueError(str(error).replace(path, "standard input")) from None


@contextlib.contextmanager
def compilation_reported(shown):
    """Report once on stderr, before the first function that is compiled in the block, that compilation takes time."""
    from ._support import cache
    from ._support.compiling import counted

    def report():
        from tqdm import tqdm

        obstacle = cache.obstacle()
        reason = "this is the first run"
        if obstacle:
            reason = f"the compiled files that came with rbal are of no use here ({obstacle})"
        line = f"rbal: compiling for some seconds, since {reason}; later runs do not (rbal warmup compiles all at once)"
        tqdm.write(line, file=sys.stderr)  # a bar that is being drawn moves on

    with counted(report if shown else None):
        yield


def warmup(chosen):
    """Run ``rbal warmup`` and return its exit code."""
    from concurrent.futures.process import BrokenProcessPool

    from . import warmup

    try:
        shown = not chosen.quiet and sys.stderr.isatty()
        done = warmup.run(chosen.only, jobs=chosen.jobs, native=chosen.native, progress=shown)
    except OSError as error:
        complain(error)
        return BAD_INPUT
    except BrokenProcessPool:
        complain("a process that compiled was ended from outside, for want of memory perhaps: try --jobs 1")
        return BAD_INPUT
    if done.functions:
        print(f"compiled {done.functions} functions in {done.seconds:.0f} s, kept in {done.folder}")
    else:
        print("nothing was left to do: everything is compiled")
    return OK


if __name__ == "__main__":
    sys.exit(main())
