"""Constants that set what users see are those of the stored studies."""

import numpy as np
import pytest
from scipy.special import ndtri

from rbal.advice import _level, _selection
from rbal.advice.internal import model_error
from rbal_book import studies

FOLD = ["table", "minority", "repeat", "fold"]
FORESEEN = ("as is", "undersampling", "oversampling", "class weights", "as is, tuned")


def folds(role):
    """Predictions of advice after a little training, and what was measured on the same folds."""
    predicted = studies.stored(f"advice/{role}-foreseen").set_index(FOLD)
    measured = studies.stored("tables/measured").set_index(FOLD)
    both = predicted.index.intersection(measured.index)
    assert len(both) > 150
    return predicted.loc[both], measured.loc[both]


def of_tables(column):
    """Mean over the folds of each table, and its squared standard error."""
    parts = column.groupby(level=["table", "minority"])
    return parts.mean(), parts.var() / parts.size()


@pytest.mark.parametrize("role", ["design", "judge"])
def test_intervals_hold_what_is_measured(role):
    """All errors of the theory together: with widths, of differences, of the level."""
    predicted, measured = folds(role)
    shares = []
    for name in FORESEEN:
        (mean, variance), at = of_tables(measured[name]), predicted[name]
        mean, variance = (part.loc[at.index.droplevel(["repeat", "fold"])].to_numpy() for part in (mean, variance))
        side = np.where(mean > at, predicted[f"{name}, high"] - at, at - predicted[f"{name}, low"])
        held = np.hypot(side, ndtri(0.95) * np.sqrt(variance)) + 1e-4 >= np.abs(mean - at)
        shares.append(held.groupby(level="minority").mean())
    for share in np.mean(shares, axis=0):
        assert share == pytest.approx(0.9, abs=0.03)


def difference_errors(name):
    """Root mean square error of a predicted difference to class weights, without the noise of what was measured."""
    predicted, measured = folds("design")
    gap = measured[name] - measured["class weights"]
    offset, _ = of_tables(gap - (predicted[name] - predicted["class weights"]))
    square = (offset**2 - of_tables(gap)[1]).groupby(level="minority").mean()
    return np.sqrt(np.maximum(square, 0.0))


def test_errors_of_differences_are_those_that_the_comments_name():
    plain = difference_errors("as is")
    assert plain.tolist() == pytest.approx([0.023, 0.037], abs=0.001)  # all positives, 25 of them
    assert plain.min() < _level.PLAIN_ERRORS["as is", "trained"] < plain.max()
    sampled = [difference_errors(name) ** 2 for name in ("undersampling", "oversampling")]
    assert np.sqrt(np.mean(sampled, axis=0)).tolist() == pytest.approx([0.011, 0.004], abs=0.001)


def test_predictions_are_off_by_as_much_as_the_tolerance_of_remedies():
    table = studies.stored("advice/judge-compared")
    gap = table["advice, linear: ba"] - table["advice, linear: predicted"]
    off = gap.groupby([table["minority"], table["table"]]).mean().abs().groupby(level="minority").mean()
    assert off.tolist() == pytest.approx([0.011, 0.025], abs=0.001)
    assert off.min() < _selection.PREDICTION_ERROR < off.max()


def test_the_note_on_kernels_has_the_numbers_of_the_study():
    """As the chapter your_data counts: tables on most of whose splits an RBF machine was recommended."""
    table = studies.stored("advice/judge-compared")
    columns = [f"advice: {name}" for name in ("curved", "predicted", "ba")]
    means = table.groupby(["minority", "table"])[columns].mean()
    means = means[means["advice: curved"] > 0.5]
    too_high = (means["advice: predicted"] - means["advice: ba"]).groupby(level="minority").mean()
    assert _selection.RBF_SHORTFALL == too_high[0].round(3)
    assert _selection.RBF_SHORTFALL_SCARCE == too_high[25].round(2)


@pytest.fixture(scope="module")
def kernels():
    return studies.stored("kernels")


def test_the_error_of_kernels_is_that_of_the_study(kernels):
    """Root mean square of log-ratios of distances, of tables with few and with more positives."""
    usable = kernels.predicted.between(0.55, 0.99) & kernels.trained.between(0.52, 0.99)
    table = kernels[(kernels.remedy == "class weights") & usable]
    for few in (True, False):
        part = table[(table.n_pos < 100) == few]
        ratio = np.log(ndtri(part.trained) / ndtri(part.predicted)).groupby([part.table, part.C]).mean()
        rows = round(part.groupby("table").n_pos.mean().median())
        assert np.sqrt(np.mean(ratio**2)) == pytest.approx(model_error(rows, kernel="rbf"), abs=0.006)


def test_the_error_of_differences_between_kernel_machines_is_that_of_the_study(kernels):
    gap = kernels.trained - kernels.predicted
    gap = gap.groupby([kernels.n_pos < 100, kernels.table, kernels.C, kernels.remedy]).mean().unstack()
    offset = gap["as is"] - gap["class weights"]
    assert np.sqrt(np.mean(offset**2)) == pytest.approx(_level.KERNEL_ERROR, abs=0.001)
