"""Remedies, kernels, calibration and the records that users register, with nasty arguments."""

import contextlib
import pickle

import numpy as np
import pytest
from nasty import Case, hold
from objects import GLOBALS
from sklearn import linear_model, svm

from rbal import calibration, kernels, losses, metrics, strategies

pytestmark = pytest.mark.fuzz
AREA = "strategies"
REGISTERS = {
    "kernels": kernels.KERNELS, "losses": losses.LOSSES, "metrics": metrics.METRICS, "strategies": strategies.REMEDIES,
    "adjustments": strategies.ADJUSTMENTS,
}  # fmt: skip


@contextlib.contextmanager
def as_before():
    """Leave the registers as they were."""
    before = {name: dict(register) for name, register in REGISTERS.items()}
    try:
        yield
    finally:
        for name, register in REGISTERS.items():
            register.clear()
            register.update(before[name])


def entered(room, record):
    """A record that is registered is found by its name."""
    function = {"adjustments": strategies.register_adjustment}.get(room) or GLOBALS[room].register
    with as_before():
        found = function(record)
        assert REGISTERS[room][record.name] is found


def new_loss(loss):
    entered("losses", loss)


def new_kernel(kernel):
    entered("kernels", kernel)


def new_metric(metric):
    entered("metrics", metric)


def new_remedy(remedy):
    entered("strategies", remedy)


def new_adjustment(adjustment):
    entered("adjustments", adjustment)


def calibrated(estimator, X, y, share=None, sample_weight=None):
    """Probabilities of a calibrated estimator."""
    fitted = calibration.calibrated(estimator, share=share).fit(X, y, sample_weight)
    fitted.predict(X), fitted.decision_function(X)
    return fitted.predict_proba(X)


GLOBALS |= {
    "new_loss": new_loss, "new_kernel": new_kernel, "new_metric": new_metric, "new_remedy": new_remedy,
    "new_adjustment": new_adjustment, "calibrated": calibrated, "linear_model": linear_model, "svm": svm,
}  # fmt: skip


def probabilities(p, call):
    assert np.all((p >= 0.0) & (p <= 1.0))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def ordered(answer, call):
    """An interval holds its prediction."""
    assert answer.low <= answer.value <= answer.high, str(answer)


def edges(answer, call):
    assert np.all(np.less_equal(answer.low, answer.high)), str(answer)


def gram(k, call):
    """A kernel is symmetric."""
    if call.values.get("Y") is None:
        np.testing.assert_allclose(k, k.T, rtol=1e-9, atol=1e-12 * max(np.abs(k).max(), 1e-300))


def bound(k, call):
    if isinstance(call.values["kernel"], str):
        pickle.loads(pickle.dumps(k))


POINT = {"moments": ("ISING", "REAL", "POTTS", "FROM_ROWS"), "alpha_pos": ("0.5", "2.0"), "alpha_neg": ("3.0", "0.5")}
OPTIONS = {
    "model": ("'svm'", "'perceptron'"),
    "lam": ("0.5",),
    "loss": ("'hinge'", "'logistic'"),
    "fit_bias": ("True", "False"),
}
KAPPA = {"kappa": ("0.5", "0.0")}
GOAL = {"metric": ("'ba'", "'f1'", "'mcc'"), "phi_pos": ("None", "0.2")}
REMEDY = ("'class weights'", "'oversampling'", "'undersampling'", "'as is'")
MANY = {"mixture": ("MANY",), "alphas": ("[0.5, 1.0, 3.0]", "np.ones(3)")}
SCHEME = {"scheme": ("'ovr'", "'multinomial'")}
CLASSIFIERS = (
    "linear_model.LogisticRegression()", "rbal.LinearSVM()", "svm.LinearSVC()", "linear_model.RidgeClassifier()",
    "linear_model.LogisticRegressionCV(use_legacy_attributes=False, l1_ratios=(0,))", "svm.SVC(kernel='linear')",
    "linear_model.LogisticRegression(C=1e-300)", "linear_model.LogisticRegression(penalty='l1', solver='liblinear')",
    "svm.SVC()", "linear_model.LogisticRegression",
)  # fmt: skip

CASES = [
    Case("strategies.mix", POINT | {"mixing": ("0.5", "0.0", "1.0")} | KAPPA | OPTIONS),
    Case("strategies.balanced", POINT | {"c": ("1.5", "1.0", "6.0")} | KAPPA | OPTIONS),
    Case("strategies.imbalanced", POINT | {"c": ("1.5", "1.0", "6.0")} | KAPPA | OPTIONS),
    Case("strategies.best_mixing", POINT | KAPPA | GOAL | {"tolerance": ("1e-3",)} | OPTIONS, edges, covers=("strategies.BestMixing",)),
    Case("strategies.compare", POINT | KAPPA | GOAL | OPTIONS, examples=20),
    Case("strategies.compare", {"moments": ("MIXTURE",), "alpha_pos": ("0.5",), "alpha_neg": ("3.0",), "model": ("'svm'",), "lam": ("0.5",)}, examples=3),
    Case("strategies.window", {"moments": ("ISING", "REAL"), "alpha": ("0.5", "2.0"), "fixed": ("'positives'", "'total'")} | KAPPA | OPTIONS, covers=("strategies.Window",), nan=True, examples=25),
    Case("strategies.adjust", POINT | {"adjustment": ("'class weights'", "'margins'", "strategies.Change(weight=(1.0, 2.0))"), "strength": ("1.0", "0.5")} | KAPPA | OPTIONS, covers=("strategies.Change",)),
    Case("strategies.best_adjustment", POINT | {"adjustment": ("'class weights'", "'margins'"), "between": ("(-1.0, 3.0)",), "tolerance": ("1e-3",)} | KAPPA | GOAL | OPTIONS, edges, covers=("strategies.BestAdjustment",), examples=25),
    Case("strategies.bagging", POINT | {"members": ("1", "10", "np.inf"), "kind": ("'undersampling'", "'bootstrap'")} | KAPPA | OPTIONS, covers=("strategies.Bagging",), examples=25),
    Case("BAGGED.variance", {"members": ("None", "3")}),
    Case("BAGGED.worth", {"tolerance": ("1e-3",), "metric": ("'ba'", "'f1'"), "phi_pos": ("None", "0.2")}),
    Case("strategies.own_widths", {"moments": ("KERNEL",), "alpha_pos": ("1.0", "0.3"), "alpha_neg": ("1.0", "3.0"), "lam": ("0.5", "10.0"), "rounds": ("4", "1"), "leverages": ("'class'", "'rows'"), "loss": OPTIONS["loss"]}, nan=True, examples=25),
    Case("strategies.interval", {"K": ("K",), "y": ("y",), "C": ("1.0", "0.01"), "remedy": ("'class weights'", "'as is'"), "metric": ("'ba'",), "level": ("0.9",), "draws": ("8",), "model_error": ("None", "0.1"), "positive": ("1",), "phi_pos": ("0.2",), "random_state": ("0",)}, ordered, covers=("strategies.Interval",), examples=40),
    Case("strategies.best_classifier", {"X": ("X",), "y": ("y",), "metric": ("'ba'",), "kernels": ("{'linear': {}}", "{'rbf': {'gamma': [0.1]}}"), "C": ("[0.1, 1.0]", "1.0"), "remedies": ("['class weights']", "None"), "phi_pos": ("None", "0.2"), "positive": ("1",), "landmarks": ("None", "10"), "random_state": ("0",)}, optional=("metric", "phi_pos", "positive", "landmarks", "random_state"), covers=("strategies.BestClassifier",), examples=30),
    Case("strategies.compare_many", MANY | {"metric": ("'ba'",), "phi": ("[0.2, 0.3, 0.5]",), "scheme": ("'ovr'",), "lam": ("1.0",)}, examples=8),
    Case("strategies.design_many", {"remedy": REMEDY, "alphas": MANY["alphas"], "mixing": ("None",)} | SCHEME, covers=("strategies.ManyDesign",)),
    Case("strategies.restore", MANY | {"remedy": REMEDY, "mixing": ("None",), "lam": ("1.0",)} | {"scheme": ("'ovr'",)}, examples=25),
    Case("strategies.logit_offsets", {"solution": ("MULTINOMIAL", "OVR"), "strength": ("1.0", "0.5")}),
    Case("strategies.REMEDIES['class weights'].design", {"n_pos": ("10",), "n_neg": ("100",), "c": ("None", "2.0")}, covers=("strategies.Remedy.design",)),
    Case("strategies.Remedy", {"name": ("'mine'",), "doing": ("'do'",), "weights": ("None", "lambda p, n: (1.0, 2.0)"), "mixing": ("None", "0.3"), "place": ("100",), "class_weight": ("None",)}),
    Case("strategies.Adjustment", {"name": ("'mine'",), "doing": ("'do'",), "change": ("lambda p, n, s: strategies.Change()",)}),
    Case("new_remedy", {"remedy": ("strategies.Remedy('mine', 'do', weights=lambda p, n: (1.0, 2.0))",)}, covers=("strategies.register",), words=("Remedy",)),
    Case("new_adjustment", {"adjustment": ("strategies.Adjustment('mine', 'do', lambda p, n, s: strategies.Change())",)}, covers=("strategies.register_adjustment",), words=("Adjustment",)),
    Case("new_metric", {"metric": ("metrics.Metric('mine', 'M', 'm', of_rates=lambda r, phi: r.tpr)",)}, covers=("metrics.register",), words=("Metric",)),
    Case("new_kernel", {"kernel": ("kernels.Kernel('mine', 'm', lambda X, Y: X @ Y.T)",)}, covers=("kernels.register",), words=("Kernel",)),
    Case("new_loss", {"loss": ("losses.bootstrapped(losses.HINGE)",)}, covers=("losses.register",), words=("Loss",)),
    Case("metrics.Metric", {"name": ("'mine'",), "label": ("'M'",), "title": ("'m'",), "of_rates": ("lambda r, phi: r.tpr",), "of_theory": ("None",), "of_scores": ("None",), "about": ("''",), "balanced": ("False",), "best_threshold": ("None",), "unit": ("None",), "priced": ("None",), "higher_is_better": ("True",), "goal": ("True",)}),
    Case("kernels.Kernel", {"name": ("'mine'",), "title": ("'m'",), "of": ("np.dot",), "parameters": ("{}",), "svc": ("None",)}, covers=("kernels.Parameter",)),
    Case("kernels.bind", {"kernel": ("'rbf'", "'linear'", "'poly'", "'laplacian'", "np.dot"), "X": ("X", "WIDE_X")}, bound),
    Case("kernels.bind", {"kernel": ("'rbf'", "'laplacian'"), "X": ("X",), "gamma": ("'scale'", "'median'", "0.3")}, bound),
    Case("kernels.bind", {"kernel": ("'arc-cosine'",), "X": ("X",), "depth": ("1", "3"), "bias": ("0.0", "1.0"), "order": ("1", "0")}, bound),
    Case("kernels.bind('rbf', X)", {"X": ("X",), "Y": ("X[:3]", "None")}, gram, optional=("Y",), covers=("kernels.BoundKernel",)),
    Case("kernels.bind('poly', X).diagonal", {"X": ("X",)}, covers=("kernels.BoundKernel.diagonal",)),
    Case("kernels.arc_cosine", {"X": ("X",), "Y": ("X", "X[:3]"), "depth": ("1", "3"), "order": ("1", "0"), "bias": ("0.0", "1.0")}),
    Case("kernels.ntk", {"X": ("X",), "Y": ("X", "X[:3]"), "depth": ("1", "3"), "bias": ("0.0", "1.0")}),
    Case("kernels.moments", {"X": ("X", "WIDE_X"), "y": ("y",), "kernel": ("'rbf'", "'ntk'", "'linear'"), "positive": ("1", "-1"), "landmarks": ("None", "10"), "random_state": ("0",)}),
    Case("calibrated", {"estimator": CLASSIFIERS, "X": ("X",), "y": ("y",), "share": ("None", "0.5"), "sample_weight": ("None", "np.ones(40)")}, probabilities, covers=("calibration.calibrated", "calibration.Calibrated"), passes_on=True, examples=60),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.target)
def test_named_errors_or_sound_answers(case):
    hold(case)
