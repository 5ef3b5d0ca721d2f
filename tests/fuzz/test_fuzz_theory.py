"""Moments, the saddle point, phases, margins, limits and losses, with nasty arguments."""

import contextlib
import pickle

import numpy as np
import pytest
from nasty import Case, hold

import rbal

pytestmark = pytest.mark.fuzz
AREA = "theory"
CLOSE = {"rtol": 1e-4, "atol": 1e-6}  # two ways to one solution, each converged to its tolerance


def kept(answer, call=None):
    """A pickled answer is the same answer."""
    copy = pickle.loads(pickle.dumps(answer))
    assert type(copy) is type(answer)
    for name in getattr(answer, "__slots__", ()):
        value = getattr(answer, name, None)
        if isinstance(value, (float, np.ndarray)):
            np.testing.assert_array_equal(value, getattr(copy, name))


def of_moments(moments, call):
    """Eigenvalues are not negative; a covariance that has others is refused by name when it is first used."""
    with contextlib.suppress(AttributeError):
        try:
            _ = moments.eigenvalues
        except ValueError as error:
            if str(error).startswith("cov must"):
                return
            raise
    if hasattr(moments, "eigenvalues"):
        assert np.all(moments.eigenvalues >= -1e-9 * max(np.abs(moments.eigenvalues).max(initial=0.0), 1e-300))
        assert np.isfinite(moments.delta_sq).all()
    kept(moments)


def rates(m):
    for rate in (m.tpr(), m.tnr(), m.ba(), m.auc()):
        assert np.all((rate >= -1e-12) & (rate <= 1.0 + 1e-12)), f"a rate is {rate}"
    np.testing.assert_allclose(m.tpr() + m.fnr(), 1.0)
    np.testing.assert_allclose(2.0 * m.ba(), m.tpr() + m.tnr(), atol=1e-12)


def swapped(call):
    """The same problem with the names of the classes exchanged."""
    pairs = {"alpha_pos": "alpha_neg", "weight_pos": "weight_neg", "kappa": "kappa_neg"}
    pairs |= {b: a for a, b in pairs.items()}
    options = {pairs.get(name, name): value for name, value in call.values.items()}
    if options.get("kappa") is None and options.get("kappa_neg") is not None:
        options["kappa"] = options["kappa_neg"]
    if call.values.get("kappa_neg") is None and "kappa" in call.values:
        options |= {"kappa": call.values["kappa"], "kappa_neg": None}
    elif call.values.get("kappa") is None and call.values.get("kappa_neg") is not None:
        return None  # which margin the other class has by default is the loss's matter
    return options


def solved(solution, call):
    rates(solution.metrics)
    assert np.all(solution.residual <= max(1e-4, call.of("tol"))), f"converged with residual {solution.residual}"
    kept(solution)
    options = swapped(call)
    if options is None or not isinstance(call.values["moments"], rbal.Moments):
        return
    other = rbal.solve(**options)
    if np.all(other.converged) and np.ndim(other.q) == 0 and other.phase == solution.phase != "SAT":
        # where scores are wide, and labels are predicted by the bias alone, b is known less well than q
        np.testing.assert_allclose(other.metrics.tpr(), solution.metrics.tnr(), rtol=1e-3, atol=1e-5)


def swept(solution, call):
    """A sweep is the solution of each of its points."""
    rates(solution.metrics)
    if not np.size(solution.phase):
        return
    names = ("alpha_pos", "alpha_neg", "kappa", "kappa_neg", "lam", "weight_pos", "weight_neg")
    given = {name: value for name, value in call.values.items() if value is not None}
    shape = np.shape(solution.q)[: np.ndim(solution.phase)]
    point = dict(given)
    for name in names:
        if name in given:
            point[name] = np.broadcast_to(given[name], shape).flat[0] if shape else given[name]
    one = rbal.solve(**point)
    if np.all(one.converged):
        first = np.ravel(solution.metrics.ba())[0]
        np.testing.assert_allclose(np.ravel(one.metrics.ba())[0], first, rtol=1e-3, atol=1e-5)


def many(solution, call):
    confusion = solution.metrics.confusion()
    assert np.all((confusion >= -1e-6) & (confusion <= 1 + 1e-6))
    np.testing.assert_allclose(confusion.sum(axis=-1), 1.0, atol=1e-6)
    kept(solution)


def density(values, call):
    for part in values if isinstance(values, tuple) else (values,):
        assert np.all(np.asarray(part) >= 0.0)


def positive(value, call):
    assert np.all(np.asarray(value) >= 0.0)


POINT = {
    "moments": ("ISING", "REAL", "POTTS", "CORRELATED", "FROM_ROWS", "WIDE", "KERNEL", "MIXTURE", "OWN"),
    "alpha_pos": ("1.0", "0.2", "30.0"),
    "alpha_neg": ("3.0", "0.2", "500.0"),
}
OPTIONS = {
    "kappa": ("0.5", "0.0", "2.0", "1"),
    "model": ("'svm'", "'perceptron'"),
    "loss": ("'hinge'", "'squared_hinge'", "'square'", "'logistic'", "losses.HINGE"),
    "lam": ("0.5", "1e-3", "20.0"),
    "kappa_neg": ("1.0", "0.2"),
    "weight_pos": ("2.0", "1e-3", "1e3"),
    "weight_neg": ("0.5", "1.0"),
    "fit_bias": ("True", "False"),
    "tol": ("1e-10", "1e-6"),
    "max_iter": ("200", "1"),
}
MANY_OPTIONS = {
    "lam": ("1.0", "0.1"),
    "weights": ("None", "'balanced'", "[1.0, 2.0, 1.0]"),
    "tol": ("1e-8",),
    "max_iter": ("300", "1"),
}
ALPHAS = ("[0.5, 1.0, 3.0]", "np.ones(3)", "[0.01, 1.0, 50.0]")
SOLUTIONS = ("SOLUTION", "SAT", "RIDGE", "LOGISTIC", "OF_MIXTURE")
SHIFTS = {
    "solution": SOLUTIONS, "delta": ("0.3", "np.linspace(-3, 3, 5)"), "label": ("1", "-1"), "cluster": ("0", "1"),
}  # fmt: skip
LAW = {"kappa": ("1.0", "0.0"), "c": ("1.0", "0.3"), "x": ("0.5", "2.0"), "mu": ("0.1", "-1.0"), "q": ("1.0", "0.2")}

CASES = [
    Case("rbal.Moments.ising", {"m": ("0.3", "0.0", "np.zeros(5)"), "delta": ("1.0", "np.ones(5)"), "L": ("5", "20"), "cov": ("np.eye(5)", "COV")}, of_moments),
    Case("rbal.Moments.potts", {"M": ("np.full((4, 3), 1/3)",), "delta": ("np.tile([0.2, -0.1, -0.1], (4, 1))", "np.zeros((4, 3))"), "cov": ("np.eye(12)",)}, of_moments),
    Case("rbal.Moments.real", {"mean_pos": ("np.ones(5)",), "mean_neg": ("np.zeros(5)", "-np.ones(5)"), "cov": ("COV", "np.eye(5)")}, of_moments),
    Case("rbal.Moments.from_data", {"X_pos": ("X[:12]", "WIDE_X[:12]"), "X_neg": ("X[12:]", "WIDE_X[12:]"), "n_states": ("None", "3"), "covariance": ("'pooled'",)}, of_moments),
    Case("rbal.Moments.from_kernel", {"K": ("K",), "y": ("y",), "positive": ("1", "-1"), "L": ("10", "40")}, of_moments, covers=("moments.KernelMoments",)),
    Case("ISING.debiased", {"n_pos": ("50", "1000"), "n_neg": ("100",), "band": ("50", "2")}),
    Case("ISING.variance", {"J": ("np.ones(5)", "np.zeros(5)")}, positive),
    Case("KERNEL.draws", {"n": ("2", "3"), "random_state": ("0", "None")}),
    Case("KERNEL.mixture", {"width_pos": ("1.0", "2.0"), "width_neg": ("0.5",)}),
    Case("KERNEL.ridge", {"C": ("1.0", "0.1")}, positive),
    Case("KERNEL.widths", {"solution": ("OF_KERNEL",), "leverages": ("'class'", "'rows'")}),
    Case("moments.Spectrum.of", {"eigenvalues": ("np.ones(5)",), "delta_sq": ("np.ones(5)",), "L": ("5",), "Q": ("1", "3")}),
    Case("rbal.Mixture.gaussian", {"means": ("np.eye(3)", "np.zeros((3, 2))"), "covs": ("np.eye(3)", "np.stack([np.eye(3)] * 3)"), "labels": ("[1, -1, -1]", "[0, 1, 2]"), "shares": ("[1.0, 0.5, 0.5]",), "widths": ("[1.0, 2.0, 1.0]",), "positive": ("1",)}, of_moments),
    Case("rbal.Mixture.from_data", {"X": ("X", "WIDE_X"), "y": ("y",), "clusters": ("1", "2"), "covariance": ("'own'", "'shared'"), "n_states": ("None",), "positive": ("1",), "random_state": ("0",)}, of_moments),
    Case("MIXTURE.covariance", {"cluster": ("0", "3")}),
    Case("MIXTURE.debiased", {"counts": ("[20, 20, 20, 20]",), "band": ("50",)}),
    Case("MIXTURE.order_parameters", {"J": ("np.ones(6)",), "b": ("0.1",)}),
    Case("MIXTURE.sample", {"n_pos": ("3", "0"), "n_neg": ("4",), "random_state": ("0", "np.random.default_rng(0)")}),
    Case("rbal.solve", POINT | OPTIONS, solved, covers=("saddle.Solution", "saddle.MixtureSolution"), examples=200),
    Case("rbal.sweep", POINT | {"alpha_pos": ("[1.0, 0.2]", "1.0")} | OPTIONS | {"kappa": ("[0.2, 0.5]", "1.0")}, swept, examples=100),
    Case("rbal.solve_ovr", {"mixture": ("MANY",), "alphas": ALPHAS, "loss": OPTIONS["loss"], "kappa": ("0.5",), "fit_bias": ("True", "False")} | MANY_OPTIONS, many, covers=("saddle.OvrSolution",)),
    Case("rbal.solve_multinomial", {"mixture": ("MANY",), "alphas": ALPHAS} | MANY_OPTIONS, many, covers=("saddle.MultinomialSolution",), examples=25),
    Case("rbal.overlap", {"moments": ("ISING",), "first": ("SOLUTION", "RIDGE"), "second": ("SOLUTION", "RIDGE"), "shared": ("(0.5, 0.5)", "None")}, covers=("saddle.Overlap",)),
    Case("saddle.residuals", {"moments": ("ISING", "REAL"), "alpha_pos": ("1.0",), "alpha_neg": ("3.0",), "kappa": ("0.5",), "n_newton": ("5",), "n_damped": ("5",)}, nan=True, covers=("saddle.Residuals",)),
    Case("OF_MIXTURE.of_cluster", {"cluster": ("0", "3")}),
    Case("OF_ROWS.unbiased", {"tol": ("1e-9",), "max_iter": ("300", "1")}, words=("mixture",)),
    Case("rbal.critical_margin", {"moments": ("ISING", "REAL", "MIXTURE"), "alpha_pos": ("0.3", "1.0"), "alpha_neg": ("0.3", "4.0"), "fit_bias": ("True", "False"), "tol": ("1e-12",)}),
    Case("rbal.critical_alpha", {"moments": ("ISING", "REAL"), "kappa": ("0.0", "0.5"), "rho_pos": ("0.5", "0.1"), "fit_bias": ("True", "False")}, positive),
    Case("rbal.train_density", SHIFTS, density),
    Case("rbal.test_density", SHIFTS, density),
    Case("rbal.gardner_capacity", {"kappa": ("0.0", "1.0", "np.linspace(0, 2, 3)")}, positive),
    Case("rbal.large_margin", {"moments": ("ISING", "REAL"), "alpha_pos": ("1.0",), "alpha_neg": ("1.0",), "weight_pos": ("1.0",), "weight_neg": ("1.0",)}),
    Case("rbal.large_margin_error", {"shift": ("1.0", "np.ones(2)"), "q": ("1.0", "0.5")}, positive),
    Case("losses.expectations", {"loss": ("losses.HINGE", "losses.LOGISTIC", "losses.SQUARE", "losses.INEQUALITY")} | LAW, nan=True),
    *(Case(f"losses.{name}", {"loss": ("losses.HINGE", "losses.LOGISTIC")}) for name in ("bootstrapped", "homogeneity", "of_difference", "tempered", "record_of")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.target)
def test_named_errors_or_sound_answers(case):
    hold(case)
