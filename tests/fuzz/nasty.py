"""What fuzz tests share: pools of nasty values, calls that are valid but for one or two of them, and the judge.

Every argument is a Python expression, so that any call can be printed, and tried again by ``tools/fuzz.py CALL``.
"""

import contextlib
import inspect
import linecache
import re
import resource
import signal
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from known import KNOWN
from objects import GLOBALS, Objects

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = f"{ROOT}/rbal/", f"{ROOT}/rbal_book/"
CPU_SECONDS, WALL_SECONDS = 20.0, 90.0  # a call that takes longer hangs
MEMORY = 4 * 2**30  # a call that wants more than this, beside what is in use, gets a MemoryError

# ---- pools

NUMBERS = (
    "0", "0.0", "-0.0", "1", "-1", "-0.5", "0.5", "2", "1.0", "1e-8", "1e-16", "1e-300", "5e-324", "1e6", "1e16", "1e300",
    "1.7e308", "np.nan", "np.inf", "-np.inf", "10**9", "2**63", "-2**63", "10**400", "True", "False",
    "np.float32(0.5)", "np.float16(2)", "np.int8(3)", "np.uint64(2**63)", "np.bool_(True)", "np.array(0.5)",
    "Fraction(1, 3)", "Decimal('0.5')", "1j",
)  # fmt: skip
THINGS = (
    "None", "''", "'abc'", "'best'", "'1'", "b'x'", "'\\ud800'", "'\\x00'", "[]", "()", "{}", "set()", "[1, 2]", "[1.0, np.nan]",
    "[[1], [1, 2]]", "[0.3, 2.0]", "(0.5, 0.5)", "[-1.0, 1.0]", "['a', 1]", "[None]", "{'a': 1}", "{0: 1.0}", "np.array([])",
    "np.zeros((0, 3))", "np.zeros((2, 3, 4))", "np.array(['a', 'b'])", "np.array([None, 1.0])", "np.ones(3)",
    "np.ma.masked_array([1.0, 2.0], [True, False])", "np.datetime64('2020-01-01')", "pd.NA", "pd.Series([1.0, 2.0])",
    "pd.DataFrame({'a': [1.0]})", "object()", "float", "len", "range(3)", "iter([1.0])", "np.random.default_rng(0)", "1 .real",
    "ISING", "SOLUTION", "...",
)  # fmt: skip
MATRICES = (
    "X[:0]", "X[:, :0]", "X[:1]", "X[:2]", "X[:, :1]", "X[:-1]", "X.T", "X.ravel()", "X[None]", "0 * X", "X[:1].repeat(40, 0)",
    "1e-300 * X", "1e-160 * X", "1e160 * X", "1e300 * X", "1e8 + X", "np.where(X > 1, np.nan, X)", "np.where(X > 2, np.inf, X)",
    "np.column_stack([X, X])", "np.column_stack([X, 0 * X])", "X[:, [0, 0, 0, 0, 0]]", "X.astype(object)", "X.astype(str)",
    "X.astype('>f8')", "X.astype('float16')", "X.astype(int)", "X > 0", "1j * X", "X.tolist()", "np.asfortranarray(X)",
    "np.ma.masked_array(X, X > 1)", "pd.DataFrame(X)", "pd.DataFrame(X, columns=list('aabcd'))", "pl.DataFrame(X)",
    "pa.table(pd.DataFrame(X, columns=list('abcde')))", "sparse.csr_array(X)", "pd.DataFrame(X).astype('Float64')",
    "pd.DataFrame({'a': ['x'] * 40, 'b': X[:, 0]})", "np.where(y[:, None] > 0, X, 0.0)", "X + 100.0 * y[:, None]", "K", "-K",
    "np.eye(40)", "STATES", "X.astype('datetime64[s]')", "memoryview(X)",
)  # fmt: skip
LABELS = (
    "y[:-1]", "y[:0]", "0 * y", "np.arange(40)", "y[:, None]", "y.astype(float)", "y + 0.5", "y * np.nan", "y > 0", "y * 10**12",
    "np.where(y > 0, 'a', 'b')", "np.where(y > 0, 'é', '')", "np.where(y > 0, '1', '01')", "['a', 1] * 20", "[None, 1] * 20",
    "[None] * 40", "[[1], [2]] * 20", "[(1, 2), (3, 4)] * 20", "y.tolist()", "y.astype(object)", "pd.Series(y)", "pd.Series(y)[::-1]",
    "pd.Categorical(y)", "pd.Series(y).astype('Int64').where(y > 0)", "y.astype('datetime64[s]')", "y.astype('float16')", "1j * y",
    "np.repeat([1, -1], [1, 39])", "np.repeat([1, -1, 3], [1, 1, 38])", "np.arange(40) % 3", "[10**400, 1] * 20", "np.ma.masked_array(y, y > 0)",
    "pl.Series(y)", "[True, 1] * 20", "[float('nan'), 1] * 20", "b'ab' * 20", "'ab' * 20",
)  # fmt: skip
MATRIX = {"X", "X_pos", "X_neg", "K", "Y", "cov", "covs", "means", "overlaps", "rows", "K_test"}
LABEL = {"y", "labels", "sample_weight", "signs", "source", "shares"}
PATHS = (
    "''", "DEVICES / 'null'", "DEVICES / 'full'", "DEVICES / 'zero'", "DEVICES / 'pipe'", "DEVICES / 'none' / 'file'", "'/'", "'\\x00'", "'\\ud800'", "b'x'", "12345", "object()", "'x' * 5000",
    "FOLDER", "[]", "1.5", "FOLDER / 'none'",
)  # fmt: skip
PATH = {"path", "store", "folder"}  # small integers are open files of this process, and words files of this folder
# as much work as was asked for is no hang: these stay small
EFFORT = {
    "n_iter", "n_epochs", "max_iter", "steps", "n_gibbs", "burn_in", "thin", "sweeps", "n_betas", "max_betas", "n_moments", "n_samples",
    "n_chains", "trials", "max_tries", "n_damped", "n_newton", "repeats", "folds", "rounds", "n_hidden",
}  # fmt: skip
LARGE = {"1e6", "1e16", "1e300", "1.7e308", "10**9", "2**63", "10**400", "np.uint64(2**63)"}
JOBS = ("None", "1", "0", "1.5", "'abc'", "[]", "-10**9", "True")  # more of them start processes


def pools(name, effort=EFFORT):
    """Nasty values for an argument of this name, from the most to the least fitting kind."""
    if name in PATH:
        return (PATHS,)
    if name == "n_jobs":
        return (JOBS,)
    own = MATRICES if name in MATRIX else LABELS if name in LABEL else ()
    numbers = tuple(n for n in NUMBERS if not (name in effort and n in LARGE))
    return (own, own, numbers, THINGS) if own else (numbers, THINGS)


def nasty(name, effort=EFFORT):
    """Strategy of nasty values for an argument of this name."""
    usual = st.one_of(*map(st.sampled_from, pools(name, effort)))
    if name in PATH | MATRIX | LABEL | {"n_jobs"}:
        return usual
    exponents = st.builds("{}1e{}".format, st.sampled_from(["", "-"]), st.integers(-30, 30))
    return usual | st.floats(-5, 5).map(repr) | (exponents if name not in effort else st.nothing())


# ---- calls


@dataclass(frozen=True)
class Case:
    """A public callable, valid values for each of its arguments, and what its answers must satisfy."""

    target: str  # expression of the callable
    arguments: dict  # name -> expressions of valid values, or a strategy of them
    check: object = None  # of (answer, call): asserts
    optional: tuple = None  # by default those with a default in the signature
    covers: tuple = ()  # further public names that the call reaches
    words: tuple = ()  # further names that an error may give
    examples: int = 30  # in the run of two minutes
    errors: tuple = (ValueError, TypeError)
    nan: bool = False  # NaN is an answer
    fixed: tuple = ()  # arguments that take no nasty values
    passes_on: bool = False  # to an estimator that the user gave, whose errors are its own
    effort: tuple = ()  # arguments that set how much work is to be done, beside those of EFFORT

    def function(self):
        return eval(self.target, GLOBALS, Objects())

    def parameters(self):
        try:
            return inspect.signature(self.function()).parameters
        except ValueError:
            return {}

    def calls(self):
        return _calls(self)

    def left_out(self):
        """Names of arguments that a call may do without."""
        if self.optional is not None:
            return self.optional
        parameters = self.parameters()
        return [n for n in self.arguments if n not in parameters or parameters[n].default is not inspect._empty]


@st.composite
def _calls(draw, case):
    optional, chosen = case.left_out(), {}
    for name, valid in case.arguments.items():
        if name not in optional or draw(st.integers(0, 3)) == 0:
            chosen[name] = draw(valid if isinstance(valid, st.SearchStrategy) else st.sampled_from(valid))
    if open_to := sorted(set(case.arguments) - set(case.fixed)):
        hit = st.lists(st.sampled_from(open_to), min_size=0, max_size=2, unique=True)
        for name in draw(hit):
            chosen[name] = draw(nasty(name, EFFORT | set(case.effort)))
    return Call(case, chosen)


@dataclass
class Call:
    """One call, as text."""

    case: Case
    chosen: dict
    values: dict = field(default_factory=dict)

    def __repr__(self):
        parameters, parts = self.case.parameters(), []
        for name, text in self.chosen.items():
            kind = getattr(parameters.get(name), "kind", inspect.Parameter.KEYWORD_ONLY)
            parts.append(f"*{text}" if kind is inspect.Parameter.VAR_POSITIONAL else f"{name}={text}")
        return f"{self.case.target}({', '.join(parts)})"

    def of(self, name, otherwise=None):
        """Value of an argument in this call, or what the function takes without it."""
        if name in self.values:
            return self.values[name]
        default = getattr(self.case.parameters().get(name), "default", inspect._empty)
        return otherwise if default is inspect._empty else default

    def __call__(self):
        objects = Objects()
        self.values = {name: eval(text, GLOBALS, objects) for name, text in self.chosen.items()}
        return eval(self.case.target, GLOBALS, objects)(**self.values)


# ---- the judge


class Hang(BaseException):
    """A call that takes too long."""


@dataclass(frozen=True)
class Finding:
    """What is wrong with a call."""

    kind: str  # exception or warning
    where: str  # innermost frame of the library, file:function
    message: str
    call: str

    @property
    def key(self):
        return f"{self.kind} at {self.where}"

    def __str__(self):
        return f"{self.key}: {self.message}\n    {self.call}"


@contextlib.contextmanager
def bounded():
    """Bound the time and the memory of what is done inside."""
    cpu, wall = CPU_SECONDS, WALL_SECONDS

    def stop(number, frame):
        raise Hang(f"more than {cpu:g} s of CPU, or {wall:g} s")

    before = {number: signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)}
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))
    signal.setitimer(signal.ITIMER_PROF, cpu)
    signal.setitimer(signal.ITIMER_REAL, wall)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        for number, handler in before.items():
            signal.signal(number, handler)


def innermost(error):
    """Innermost frame of the library in a traceback, as file:function, and whether it raised on purpose there."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename.startswith(PACKAGES)]
    if not ours:
        return "outside", False
    last = frames[-1]
    meant = last.filename.startswith(PACKAGES) and linecache.getline(last.filename, last.lineno).strip().startswith(
        "raise"
    )
    return f"{ours[-1].filename.removeprefix(PACKAGES[0]).removeprefix(f'{ROOT}/')}:{ours[-1].name}", meant


def names_of(call):
    """Names that an error of a call may give."""
    return {*call.case.parameters(), *call.case.arguments, *call.case.words} - {"self", "kwargs", "options", "params"}


def _after_ours(error):
    """File that the innermost frame of the library called, or the empty string."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = [k for k, name in enumerate(files) if name.startswith(PACKAGES)]
    return files[ours[-1] + 1] if ours and ours[-1] + 1 < len(files) else ""


def named(error, call):
    """Whether an error is one that a user can act on: raised on purpose, with the name of an argument or a file."""
    meant, text = innermost(error)[1], str(error)
    # estimators leave checks of rows to scikit-learn and imbalanced-learn, whose words users know
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    if re.search(r"/(sklearn|imblearn)/utils/\w*validation\.py$|/sklearn/utils/(multiclass|_array_api)\.py$", last):
        return isinstance(error, call.case.errors)
    if call.case.passes_on and re.search(r"/site-packages/(sklearn|imblearn)/", _after_ours(error)):
        return True
    if isinstance(error, OSError) and OSError in call.case.errors:
        return error.filename is not None or (meant and bool(text))
    return (
        meant
        and isinstance(error, call.case.errors)
        and any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names_of(call))
    )


def judge(call):
    """Return "answer", "error", or what is wrong with a call: this is the one rule of the suite."""
    from sklearn.exceptions import DataConversionWarning

    from rbal import ConvergenceWarning

    seen = []
    try:
        with warnings.catch_warnings(record=True) as seen, bounded():
            warnings.simplefilter("always")
            try:
                answer = call()
            except Hang as error:
                return Finding("hang", innermost(error)[0], str(error), repr(call))
            except Exception as error:
                if named(error, call):
                    return "error"
                return Finding(type(error).__name__, innermost(error)[0], str(error)[:200], repr(call))
            sound(answer, call, told=any(issubclass(w.category, ConvergenceWarning) for w in seen))
    except (Exception, Hang) as error:
        message = str(error).strip() or traceback.format_exc(limit=-1)
        return Finding(f"wrong {type(error).__name__}", call.case.target, message[:300], repr(call))
    for warning in seen:
        if not issubclass(warning.category, (ConvergenceWarning, DataConversionWarning)) and (
            warning.category is not UserWarning
        ):
            where = f"{Path(warning.filename).name}:{warning.lineno}"
            return Finding(warning.category.__name__, where, str(warning.message)[:200], repr(call))
    return "answer"


def sound(answer, call, told=False):
    """Check an answer: no NaN but from a NaN that was given or where a warning tells, and the invariances of its case."""
    converged = getattr(answer, "converged", True)
    nan = call.case.nan or told or any(np.isnan(n).any() for value in call.values.values() for _, n in numbers(value))
    missing = [name for name, number in numbers(answer) if np.isnan(number).any()]
    assert nan or not missing or not np.all(converged), f"NaN in {missing[0] or 'the answer'}"
    if call.case.check is not None and np.all(converged) and (call.case.nan or not missing):
        call.case.check(answer, call)


def numbers(answer, name=""):
    """Yield the float arrays of an answer, with their names."""
    if isinstance(answer, (float, np.floating)):
        yield name, np.asarray(answer)
    elif isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        yield name, answer
    elif isinstance(answer, (tuple, list)):
        for k, part in enumerate(answer):
            yield from numbers(part, getattr(answer, "_fields", range(len(answer)))[k])


# ---- running


def known(finding):
    return finding.key in KNOWN


def tally(call, counts, findings):
    """Judge a call, count it, and keep what is found."""
    found = judge(call)
    counts["calls"] += 1
    counts[found if isinstance(found, str) else "known" if known(found) else "findings"] += 1
    if isinstance(found, Finding) and not known(found):
        findings.setdefault(found.key, found)


def run(case, examples, *, derandomize=True, start=0, until=None, on=None):
    """Try so many calls of a case; the counts, and the findings by their keys."""
    counts, findings = Counter(), {}

    @settings(max_examples=examples, database=None, deadline=None, derandomize=derandomize, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case.calls())
    def attempt(call):
        if until is not None and until():
            return
        if on is not None:
            on(call)
        tally(call, counts, findings)

    (attempt if derandomize else seed(start)(attempt))()
    return counts, findings


def each(case):
    """Yield a valid call for every argument and every nasty value of its pools in its place, in the same order always."""
    optional = case.left_out()
    needed = {name: valid for name, valid in case.arguments.items() if name not in optional}
    if any(isinstance(valid, st.SearchStrategy) for valid in needed.values()):
        return  # drawn files and words of the command are left to the random draws
    valid = {name: values[0] for name, values in needed.items()}
    for name in (name for name in case.arguments if name not in case.fixed):
        for text in dict.fromkeys(sum(pools(name, EFFORT | set(case.effort)), ())):
            yield Call(case, {**valid, name: text})


def hold(case):
    """Fail with what is found in the case, in its share of two minutes."""
    counts, findings = run(case, case.examples)
    assert not findings, "\n".join(map(str, findings.values()))
    assert counts["answer"], f"no call of {case.target} was answered: its valid values are not"
