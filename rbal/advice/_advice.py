"""What :func:`rbal.advise` returns: what is recommended, what to expect of it, and how sure that is."""

from dataclasses import dataclass, field

import numpy as np

from . import _page, _report, _text
from ._selection import Search


@dataclass
class Advice:
    """The advice that :func:`rbal.advise` returns.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per remedy, index (strategy, threshold). Columns: ``predicted`` value of the metric, its interval
        ``low`` to ``high``, the standard deviation ``scatter`` due to the noise of the sample alone, how far it is
        ``behind`` the best remedy and the standard ``error`` of that, whether it is ``as_good`` as the best within that
        error, ``tpr``, ``tnr``, ``auc`` and ``mixing`` (NaN where nothing is sampled). After a check also ``measured``,
        its standard error ``measured_error``, and ``expected``: the prediction at the size of the training folds, to be
        compared with it.
    best : (str, str)
        Row of the recommended remedy: the simplest of those predicted to be within 0.02 of the best, the error of
        predictions on real tables; or the best in the check, if the check contradicts the prediction.
    metric : str
        Name of the metric.
    mixing, mixing_low, mixing_high : float
        Best mixture of under- and oversampling at the trained threshold, 0 under and 1 over, and the range that is
        within one standard error of it.
    notes : list of str
        What was recognised or left out when the table was read, and where the theory hardly applies.
    confidence : {"high", "moderate", "low"}
        Confidence in the recommendation. A check raises it one step if the mean over all remedies is within 0.03 of
        what was expected, with an error no larger than that; lowers it one step if not; and sets it to low if it
        disagrees.
    agrees : bool or None
        Whether the check agrees with the theory; None without a check.
    offset, offset_error : float or None
        Mean over all remedies of measured minus expected, and its standard error; None without a check.
    curve : pandas.DataFrame
        Predicted metric against the mixing, with its interval, at the C of what is recommended; the table has each
        remedy at its own.
    data : object
        The table that was read: sizes, columns, what was imputed and dropped.
    setting : object
        The classifier and the metric.
    moments : Spectrum
        Estimated class statistics, for :func:`rbal.solve`; class sizes are counted in ``moments.L``. Where
        each class has a width of its own, as by default, this is ``moments.spectrum``.
    level : float
        Coverage of the intervals.
    candidates : pandas.DataFrame or None
        If C or the kernel was left open, everything that was predicted: ``kernel``, ``gamma``, ``strategy``,
        ``threshold``, ``C``, ``mixing``, ``predicted``, and whether it is ``trainable``: of a machine whose weights all
        but vanish, or whose bias next to no sample holds, an optimiser finds another than the one that is predicted,
        and it is not chosen. The table then has the column ``C`` too, the best of each remedy.
    nothing : float
        If C or the kernel was left open, the prediction for C = 1 (or the C that was fixed) and the data as they are;
        otherwise NaN, and the table has it in the row ("as is", "trained").
    trained : tuple or None
        What was trained for the level of all predictions, with ``train="little"``: ``u``, the logarithm of the factor
        by which the classes were moved apart, its ``error``, what was ``measured`` (a dict from strategy and threshold
        to the metric, its standard error, and what the theory had expected of it), on how many ``rows`` and in how many
        ``fits``.
    """

    table: object
    best: tuple
    metric: str
    mixing: float
    mixing_low: float
    mixing_high: float
    notes: list
    confidence: str
    agrees: bool | None = None
    offset: float | None = None
    offset_error: float | None = None
    curve: object = field(default=None, repr=False)
    data: object = field(default=None, repr=False)
    setting: object = field(default=None, repr=False)
    moments: object = field(default=None, repr=False)
    level: float = 0.9
    candidates: object = field(default=None, repr=False)
    nothing: float = field(default=np.nan, repr=False)
    drawn: list = field(default_factory=list, repr=False)
    wanted: Search = field(default=Search(), repr=False)
    trained: object = field(default=None, repr=False)
    asked: dict = field(default_factory=dict, repr=False)  # arguments that were not the default, for the code
    many = False  # whether there are more than two classes; no field

    @property
    def whole(self):
        """Whether C or the kernel was searched, too."""
        return self.candidates is not None

    @property
    def C(self):
        """Inverse ridge of the recommended classifier."""
        return self.C_of(self.best)

    @property
    def kernel(self):
        """Kernel of the recommended classifier, "linear" or "rbf"."""
        return self.setting.kernel

    @property
    def gamma(self):
        """Width of the RBF kernel, as in scikit-learn; None for the linear one."""
        return self.setting.gamma

    def C_of(self, row):
        """Return the inverse ridge of a remedy.

        Parameters
        ----------
        row : (str, str)
            Strategy and threshold.

        Returns
        -------
        float
        """
        return float(self.table.loc[row, "C"]) if "C" in self.table else self.setting.C

    @property
    def threshold(self):
        """Threshold of the recommended classifier on the scores of ``decision_function``, with what it gives.

        A :class:`rbal.metrics.Threshold`: if it is moved, its standard errors are those of a threshold that is tuned on
        as many held-out scores as there are rows, known for balanced accuracy and costs, and NaN for other metrics.
        """
        return _report.threshold(self)

    def threshold_for(self, *, recall=None, precision=None, costs=None):
        """Return the threshold of the recommended classifier for a wanted recall, precision or the lowest cost.

        Parameters
        ----------
        recall, precision : float, optional
            Share of the positives to be found, or of positives among positive answers.
        costs : (float, float), optional
            Costs of a missed positive and of a false alarm. One of the three is to be given.

        Returns
        -------
        rbal.metrics.Threshold
            With the standard errors of a threshold that is tuned on as many held-out scores as there are rows.
        """
        return _report.threshold_for(self, recall=recall, precision=precision, costs=costs)

    @property
    def calibration(self):
        """Link from scores of the recommended classifier to probabilities in the mix of this table.

        A :class:`rbal.metrics.Link`: the probability of a positive with the score s is σ(slope·s + intercept). A slope
        below 1 says that a logistic regression is overconfident.
        """
        return _report.solution(self).metrics.calibration(self.setting.share)

    @property
    def curve_of_data(self):
        """What more rows or columns would bring the recommended classifier, with its remedy and C as they are.

        A pandas.DataFrame with a row for each number that is added. Columns: ``kind`` ("positives", "negatives", or
        "columns" that vary and separate as those of the table do), ``more`` of it, ``predicted`` value of the metric in
        the mix of today's table with its interval ``low`` to ``high``, and the ``gain`` over today with its own,
        ``gain_low`` to ``gain_high``, from the same draws as all intervals.
        """
        kept = self.__dict__.setdefault("_curves", {})  # of each remedy that was recommended
        if self.best not in kept:
            kept[self.best] = _report.curve_of_data(self)
        return kept[self.best].copy()

    def explain(self):
        """Return the recommendation, its reason and its confidence, in plain words.

        Returns
        -------
        str
        """
        return _text.explain(self)

    def plot(self, axes=None):
        """Draw the remedies with their intervals, and the metric against the mixing.

        Parameters
        ----------
        axes : two matplotlib Axes, optional
            By default those of a new figure.

        Returns
        -------
        matplotlib Figure
        """
        return _report.plot(self, axes)

    def sampler(self, random_state=None):
        """Return the sampler of the recommended remedy, for a pipeline of imbalanced-learn.

        If the remedy is class weights or a threshold alone, the sampler leaves the samples unchanged.

        Parameters
        ----------
        random_state : int, RandomState instance or None
            Seed of the draw.

        Returns
        -------
        RandomMixSampler or FunctionSampler
        """
        from ._pipeline import sampler

        return sampler(self.table.loc[self.best, "mixing"], random_state)

    def bags(self, members=(1, 3, 10, 30)):
        """Return what bags of undersampled machines are predicted to score, for a linear classifier.

        Each member is trained on the rarer class and as many rows of the other one, with the C of "undersampling", and
        the scores are averaged. By how much that narrows them is told by the theory of one covariance for both classes.

        Parameters
        ----------
        members : int or list of int
            Numbers of machines.

        Returns
        -------
        pandas.DataFrame
            The metric with the trained threshold and with a moved one, a row for each number of members.
        """
        return _report.bags(self, members)

    def pipeline(self, random_state=None, *, members=None, probabilities=False, share=None):
        """Return the recommended classifier, not yet fitted: coding, sampler, learner, and threshold if it is moved.

        Parameters
        ----------
        random_state : int, RandomState instance or None
            Seed of the sampler.
        members : int, optional
            Train a bag of so many undersampled machines instead, as :meth:`bags` predicts it, with a moved threshold if
            the recommended one is moved.
        probabilities : bool
            Whether it has ``predict_proba`` with the probabilities that the theory says are honest
            (:func:`rbal.calibrated`), whatever was sampled or weighed. Labels stay those of the recommended threshold.
            For linear classifiers only.
        share : float, optional
            Share of positives among the rows to come, for these probabilities; by default that of the rows to fit.

        Returns
        -------
        estimator
            It takes tables like the one that the advice is about.
        """
        from ._pipeline import pipeline

        return pipeline(self, random_state, members=members, probabilities=probabilities, share=share)

    def to_json(self):
        """Return the whole advice as one JSON object.

        Returns
        -------
        str
        """
        return _report.to_json(self)

    def to_html(self):
        """Return a report as one HTML page that needs no other files and no network.

        Returns
        -------
        str
        """
        return _page.to_html(self)

    def _repr_html_(self):
        """Return the verdict and the table, for a notebook."""
        return _page.to_fragment(self)


@dataclass
class ManyAdvice:
    """The advice that :func:`rbal.advise` returns for three classes or more.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per remedy, index (strategy, threshold): the ``predicted`` macro recall with its interval ``low`` to
        ``high``, how far it is ``behind`` the best, the ``lowest`` recall of a class, the ``accuracy``, ``C`` and
        ``mixing`` (NaN where nothing is sampled). Remedies share what is not known of the classes: all intervals are
        that of the recommended one, moved. After a check also ``measured``, ``measured_error`` and, for the recommended
        one and for doing nothing, ``expected``: the prediction at the size of the training folds.
    best : (str, str)
        Row of the recommended remedy: the simplest of those predicted within 0.02 of the best. A threshold that is
        "moved" is one for each class, chosen by the theory.
    confusion : pandas.DataFrame
        Of each class (row) the shares that are answered as each class (column), as predicted for the recommended one.
    recalls : pandas.DataFrame
        One row per class: its ``rows``, predicted ``recall`` with ``low`` and ``high``, and the class that it is most
        often ``taken for``.
    thresholds : pandas.Series
        What is subtracted from the score of each class; 0 if thresholds are as trained.
    nothing : float
        Predicted macro recall of the data as they are, with C = 1 or the C that was fixed.
    notes : list of str
    confidence : {"high", "moderate", "low"}
    agrees : bool or None
        Whether a check agrees with the theory; None without a check.
    metric : str
        "ba", the balanced accuracy: of many classes this is the macro recall.
    level : float
        Coverage of the intervals.
    data, setting, rows : object
        The table that was read, the classifier, and the candidate of each row of the table.
    """

    table: object
    best: tuple
    confusion: object
    recalls: object
    thresholds: object
    nothing: float
    notes: list
    confidence: str
    agrees: bool | None = None
    metric: str = "ba"
    level: float = 0.9
    data: object = field(default=None, repr=False)
    setting: object = field(default=None, repr=False)
    rows: dict = field(default_factory=dict, repr=False)
    many: bool = field(default=True, repr=False)
    asked: dict = field(default_factory=dict, repr=False)  # arguments that were not the default, for the code

    @property
    def C(self):
        """Inverse ridge of the recommended classifier."""
        return float(self.table.loc[self.best, "C"])

    @property
    def kernel(self):
        """Kernel of the recommended classifier: "linear"."""
        return "linear"

    def explain(self):
        """Return the recommendation, and what is to be expected of it, in plain words."""
        return _text.many_explain(self)

    def pipeline(self, random_state=None):
        """Return the recommended classifier, not yet fitted.

        Parameters
        ----------
        random_state : int, RandomState instance or None
            Seed of the sampler.

        Returns
        -------
        estimator
            Coding, sampler if there is one, a machine for each class against the rest, and a threshold for each class.
        """
        from ._pipeline import many_pipeline

        return many_pipeline(self, random_state)

    def to_json(self):
        """Return the whole advice as one JSON object."""
        return _report.many_to_json(self)

    def to_html(self):
        """Return a report as one HTML page that needs no other files and no network."""
        return _page.many_to_html(self)

    def _repr_html_(self):
        """Return the verdict and the tables, for a notebook."""
        return _page.many_to_fragment(self)
