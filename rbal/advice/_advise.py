"""The functions that give advice, and the checks of their arguments."""

import inspect
from dataclasses import dataclass
from functools import partial

import numpy as np
from tqdm.auto import tqdm

from .._support.validation import MOST_DRAWS, flag, n_dimensions, number, one_of, positive_int, real_array, seeded
from ..losses import LOSSES, trained
from ..metrics.internal import goals, named, two_prices
from ._advice import Advice
from ._check import Validation, verify
from ._columns import ManyLabels
from ._judgement import predict
from ._prediction import Setting
from ._reading import FileOptions, read
from ._selection import Search
from ._table import ManyCoder, TableOptions, from_arrays

C_RANGE = 1e-10, 1e10  # outside, only rounding errors change
MOMENTS = ("pooled", "width", "auto")
LARGEST_ERROR = 20.0  # of log-distances: their exponentials are finite


def advise(
    X,
    y,
    metric="ba",
    *,
    C="best",
    kernel="best",
    moments="auto",
    loss="hinge",
    costs=None,
    positive=None,
    categorical="auto",
    keep=(),
    standardize=True,
    train="little",
    check=False,
    folds=5,
    repeats=4,
    draws=None,
    level=0.9,
    model_error=None,
    n_jobs=None,
    random_state=0,
    progress=True,
):
    """Advise what to do about the class imbalance of a table, for a linear classifier or an SVM with an RBF kernel.

    Parameters
    ----------
    X : (n, L) array, DataFrame or sparse matrix
        Features, as an array or as a frame of pandas, polars or pyarrow. Columns of a frame that hold no numbers are
        categorical, and become one indicator per level. Missing values, and masked ones of a masked array, are imputed
        (mean, most frequent level); constant columns are left out, and so are a first column that counts the rows and
        a column that tells the label of every row; all this is reported.
    y : (n,) array or series
        Two labels of any type; or more, up to 40, for one linear machine of each class against the rest.
    metric : {"ba", "f1", "mcc", "auprc", "auc", "cost"}
        Balanced accuracy, F1, Matthews correlation, area under the precision–recall or the ROC curve, mean cost, or
        another goal in :data:`rbal.metrics.METRICS`.
    C : "best", float or list of floats
        Inverse ridge of the classifier, as in scikit-learn, from 1e-10 to 1e10; or those to choose from, for every
        remedy on its own; "best", the default, searches six decades. Of values that are predicted within
        0.01 of the best, the one nearest to 1 is taken.
    kernel : {"best", "linear", "rbf"}
        A linear classifier; an SVM with an RBF kernel, whose gamma is the best of some around "scale"; or, by default,
        whichever is predicted to be better: the linear one, unless the other is ahead by more than 0.02, the error of
        predictions on real tables, also after both were trained a little. The RBF kernel goes with two classes and
        ``loss="hinge"``; it is judged on 1,500 rows if there are more, which a note says, and of itself it is left out
        with more than 10,000.
    moments : {"auto", "width", "pooled"}
        Whether both classes have one covariance up to a factor, the width of each class along the weights, which even
        few rows tell; or one for both, "pooled". With "auto", the default, these are widths, unless a class has fewer
        than 10 rows.
    loss : {"hinge", "squared_hinge", "square", "logistic"}
        Loss of the classifier: a linear SVM, the default of LinearSVC, a ridge classifier, or logistic regression.
    costs : (float, float), optional
        Cost of a missed positive and of a false alarm, for ``metric="cost"``.
    positive : label, optional
        Label of the positive class; by default the rarer one.
    categorical : "auto" or list of columns
        Columns to encode one-hot although they hold numbers.
    keep : list of columns
        Columns that are features although they look like an index.
    standardize : bool
        Whether the classifier sees numeric columns scaled to unit variance.
    train : {"none", "little", "check"}
        What is trained. Nothing: all numbers are those of the theory, of the best threshold where it is moved. A
        little, two seconds of fits at most and the same on every machine: the recommended classifier and that of doing
        nothing, by cross-validation, which give the level of all predictions, weighed with the theory by their errors.
        Or all remedies, in columns beside the predictions of the theory, which say whether both agree. If anything is
        trained, what is predicted for a moved threshold is that of a tuned one. With more than five classes, a little
        is the same as nothing.
    check : bool
        True is ``train="check"``.
    folds, repeats : int
        Folds of the cross-validation, and how often it is repeated.
    draws : int, optional
        Draws of the moments behind the intervals, rounded up to a power of two. By default 32, or 128 with one
        covariance and a loss that has closed forms.
    level : float
        Coverage of the intervals.
    model_error : float, optional
        Error of the theory on real classes: the standard deviation of the logarithm of the factor by which it misjudges
        their distance. By default that of real tables: 0.15 with 25 rows of the rarer class and 0.12 with many if each
        class has a width, 0.33 and 0.20 with one covariance; 0 is for Gaussian classes.
    n_jobs : int, optional
        Workers of the check, as in joblib; by default all cores.
    random_state : int
        Seed.
    progress : bool
        Whether the check, and the prediction of many classes, show a bar with the time that is left.

    Returns
    -------
    Advice
        Or a :class:`rbal.advice.ManyAdvice`, if there are more than two labels.

    Notes
    -----
    The prediction is the metric on new data, averaged over training sets of this size. Its interval has two parts: the
    class statistics are estimated from the rows at hand, and real classes are not quite those of the theory
    (``model_error``, found on real tables with a linear SVM and balanced accuracy, and used for other metrics too).
    What is trained narrows both down. The scatter between training sets is not in it. The chapter "Your own data"
    shows how many hold what is measured.
    Remedies are compared by the first part alone, since they share the second.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["ill", "well"], [60, 940])
    >>> X = rng.normal(size=(1000, 40)) + 0.4 * (y == "ill")[:, None]
    >>> advice = advise(X, y, C=1.0, kernel="linear", moments="pooled", train="none")
    >>> advice.best
    ('class weights', 'moved')
    >>> advice.table["predicted"].unstack(sort=False).round(2)
    threshold      trained  moved
    strategy
    as is             0.72   0.84
    undersampling     0.78   0.78
    oversampling      0.81   0.82
    best mix          0.81   0.82
    class weights     0.81   0.82
    """
    options, table = checked_options(locals())
    return _advised(partial(from_arrays, X, y, table), options)


def advise_file(
    path,
    label,
    metric="ba",
    *,
    C="best",
    kernel="best",
    moments="auto",
    loss="hinge",
    costs=None,
    positive=None,
    categorical="auto",
    drop=(),
    keep=(),
    standardize=True,
    sep=None,
    encoding=None,
    decimal=None,
    thousands=None,
    na=(),
    train="little",
    check=False,
    folds=5,
    repeats=4,
    draws=None,
    level=0.9,
    model_error=None,
    n_jobs=None,
    random_state=0,
    progress=True,
):
    """Advise as :func:`rbal.advise` on a table in a file, which is read once and in bounded memory.

    Parameters
    ----------
    path : path
        CSV file with a header, possibly compressed by gzip; or Parquet, if pyarrow is installed.
    label : str
        Column of the labels.
    metric, C, kernel, moments, loss, costs, positive, categorical, keep, standardize
        As in :func:`rbal.advise`.
    train, check, folds, repeats, draws, level, model_error, n_jobs, random_state
        As in :func:`rbal.advise`.
    drop : list of str
        Columns to leave out.
    sep : str, optional
        Separator of a CSV file; by default the most frequent of , ; | and tab in the header.
    encoding : str, optional
        Encoding of a CSV file, utf-8 by default.
    decimal, thousands : str, optional
        Marks of decimals (. or ,) and of thousands (, . ' or a space) in the numbers of a CSV file. By default they are
        recognised, and notes say so, also where 1,234 could be either.
    na : list of str
        Words for missing values, beside the usual ones such as NA, null and ?.
    progress : bool
        Whether reading and the check show bars.

    Returns
    -------
    Advice
        Or a :class:`rbal.advice.ManyAdvice`, if there are more than two labels.
    """
    options, table = checked_options(locals())
    file = FileOptions(sep, encoding, decimal, thousands, na, drop)
    with tqdm(total=100, desc="reading", unit="%", disable=not progress, leave=False) as bar:
        reading = partial(read, path, label, table, file, advance=lambda share: bar.update(int(100 * share) - bar.n))
        return _advised(reading, options, when_read=bar.close)


@dataclass(frozen=True)
class Options:
    """Arguments of advise, checked, beside the table and how it is read."""

    search: Search  # what is left open
    C: float  # the one that is fixed, or with which doing nothing is meant
    loss: str
    metric: str
    costs: tuple
    train: str  # "none", "little" or "check"
    folds: int
    repeats: int
    draws: int
    level: float
    model_error: float | None
    n_jobs: int | None
    random_state: object
    progress: bool
    changed: dict  # arguments that are not the default, as they can be written

    @property
    def validation(self):
        """How the check is done."""
        return Validation(self.folds, self.repeats, self.random_state, self.n_jobs, self.progress)

    def setting(self, data):
        """Return the Setting of a table of two classes."""
        sizes = data.n_pos, data.n_neg, data.D
        return Setting(*sizes, self.C, self.loss, self.metric, self.costs, tuned=self.train != "none")


def checked_options(given):
    """Check the arguments of advise or of advise_file, a dict; return Options and TableOptions."""
    loss, moments, draws = given["loss"], given["moments"], given["draws"]
    seeded("random_state", given["random_state"])
    for name in ("standardize", "check", "progress"):
        flag(name, given[name])
    one_of("moments", moments, MOMENTS)
    draws = _default_draws(loss, moments) if draws is None else draws
    train = "check" if given["check"] else one_of("train", given["train"], ("none", "little", "check"))
    level = number("level", given["level"], 0.0, 1.0, open_low=True)
    if level == 1.0:
        raise ValueError("level must be < 1, got 1")
    error = given["model_error"]
    error = None if error is None else number("model_error", error, 0.0, LARGEST_ERROR)
    search, C = _search(given["C"], given["kernel"], moments, loss)
    metric, folds, repeats = given["metric"], given["folds"], given["repeats"]
    one_of("metric", metric, goals())
    C = number("C", C, *C_RANGE)
    positive_int("draws", draws, MOST_DRAWS)
    positive_int("folds", folds), positive_int("repeats", repeats)
    if min(folds, draws) < 2:
        raise ValueError(f"folds and draws must be at least 2, got {folds} and {draws}")
    options = Options(
        search, C, loss, metric, _costs(metric, given["costs"]), train, folds, repeats, draws, level, error,
        given["n_jobs"], given["random_state"], given["progress"], _changed(given),
    )  # fmt: skip
    return options, TableOptions(
        given["positive"], given["categorical"], bool(given["standardize"]), given["random_state"], given["keep"]
    )


def _changed(given):
    """Return the arguments of advise that change its numbers and are not the default, as they can be written."""
    changed = {}
    for name, parameter in inspect.signature(advise).parameters.items():
        if name in ("X", "y", "n_jobs", "progress"):
            continue
        value = given[name]
        if not _same(value, parameter.default) and not isinstance(value, np.random.Generator):
            changed[name] = list(value) if isinstance(value, set) or getattr(value, "ndim", 0) else value
    return changed


def _same(value, default):
    try:
        return bool(np.array_equal(value, default))
    except (TypeError, AttributeError):  # pandas' NA is neither equal nor not; numpy 2.0 compares no number with a word
        return False


def _search(C, kernel, moments, loss):
    """Return what is left open, and the C that is fixed, or with which "doing nothing" is meant."""
    one_of("kernel", kernel, ("linear", "rbf", "best"))
    if one_of("loss", loss, trained()) != "hinge":
        if kernel == "rbf":
            raise ValueError(f"loss must be 'hinge' for kernel='rbf', got {loss!r}")
        kernel = "linear"
    if isinstance(C, str) and C == "best":
        return Search("best", kernel, moments), 1.0
    if isinstance(C, (str, bool)) or n_dimensions("C", C) == 0:
        return Search(None, kernel, moments), C
    grid = real_array("C", C)
    if grid.ndim != 1 or not grid.size:
        raise ValueError(f"C must be a number, a list of numbers or 'best', got shape {grid.shape}")
    return Search(tuple(number("C", value, *C_RANGE) for value in grid.tolist()), kernel, moments), 1.0


def _default_draws(loss, moments):
    """Return the default number of draws, which is smaller if each takes several saddle points, or quadratures."""
    quick = LOSSES[one_of("loss", loss, trained())].widest == np.inf and moments == "pooled"
    return 128 if quick else 32


def _costs(metric, costs):
    """Return the costs of both errors, which only ``metric="cost"`` takes."""
    if named(metric).priced:
        return two_prices(costs)
    if costs is not None:
        raise ValueError(f"costs go with metric='cost', got metric={metric!r}")
    return 1.0, 1.0


def _advised(reading, options, when_read=None):
    """Return the advice on a table; ``when_read`` is called when a table of two classes was read."""
    data = _of_two_classes(reading)
    if data is None:
        from ._many_judgement import advise_many

        advice = advise_many(reading(coder=ManyCoder), options)
    else:
        if when_read is not None:
            when_read()
        advice = Advice(**predict(data, options.setting(data), options))
        advice = verify(advice, options.validation) if options.train == "check" else advice
    advice.asked = options.changed
    return advice


def _of_two_classes(reading):
    """Return the Data of a table, or None if it has more than two classes: it is then read again."""
    try:
        return reading()
    except ManyLabels:
        return None
