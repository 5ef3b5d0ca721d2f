"""Learners, samplers, Boltzmann machines, experiments, data sets and what is drawn of them, with nasty arguments."""

import contextlib
import io

import numpy as np
import pytest
from nasty import Case, hold
from objects import GLOBALS, Objects

import rbal
import rbal_book.lessons
import rbal_book.studies.tables

pytestmark = pytest.mark.fuzz
AREA = "learning"


def fitted(learner, X, y, sample_weight):
    clf = learner.fit(X, y, sample_weight)
    answers = clf.predict(X)
    assert set(np.unique(answers)) <= set(np.asarray(clf.classes_).tolist()) or answers.size == 0
    return clf, clf.decision_function(X)


def svm_fit(X, y, sample_weight=None, **options):
    """Scores of a trained support vector machine."""
    return fitted(rbal.LinearSVM(**options), X, y, sample_weight)[1]


def perceptron_fit(X, y, sample_weight=None, **options):
    """Scores of a trained perceptron."""
    return fitted(rbal.SphericalPerceptron(**options), X, y, sample_weight)[1]


def trained_orders(moments):
    """Order parameters of a trained machine."""
    made = Objects()
    return rbal.LinearSVM().fit(made["X"], made["y"]).order_parameters(moments)


def resample(sampler):
    def resampled(X, y, **options):
        X_new, y_new = sampler(**options).fit_resample(X, y)
        assert (X_new.shape[0] if hasattr(X_new, "shape") else len(X_new)) == len(y_new)
        return y_new

    return resampled


def boltzmann(X, y=None, **options):
    """A machine that is trained, sampled from and scored."""
    machine = rbal.RBM(**{"n_hidden": 2, "n_epochs": 1, "n_chains": 5, "progress": False, **options}).fit(X, y)
    machine.partial_fit(X), machine.transform(X), machine.free_energy(X)
    return machine.score_samples(X)


def saved(path):
    """A machine that is written to a file, and read again."""
    Objects()["BOLTZMANN"].save(path)
    return rbal.RBM.load(path).weights_


def quiet(function):
    def silenced(*args, **kwargs):
        with contextlib.redirect_stdout(io.StringIO()):
            return function(*args, **kwargs)

    return silenced


GLOBALS |= {
    "svm_fit": svm_fit, "perceptron_fit": perceptron_fit, "trained_orders": trained_orders, "boltzmann": boltzmann, "saved": saved,
    "random_mix": resample(rbal.RandomMixSampler), "informed": resample(rbal.LikelihoodInformedSampler),
    "smote": resample(rbal.RBMSMOTE), "tables": rbal_book.studies.tables, "check_answer": quiet(rbal_book.lessons.check),
}  # fmt: skip


def permuted(scores, call):
    """The order of the columns does not matter, once it has converged; without a ridge to speak of it does not."""
    if call.values.get("max_iter", 1_000_000) < 1_000 or call.of("lam", 1.0) < 1e-6 or call.of("tol", 1e-5) > 1e-3:
        return
    X = np.asarray(call.values["X"], float)
    options = {name: value for name, value in call.values.items() if name not in ("X", "y", "sample_weight")}
    again = (
        rbal.LinearSVM(**options)
        .fit(X[:, ::-1], call.values["y"], call.values.get("sample_weight"))
        .decision_function(X[:, ::-1])
    )
    np.testing.assert_allclose(again, scores, atol=0.02 * max(np.abs(scores).max(), 1.0))


def labels(y_new, call):
    """Resampling invents no class."""
    assert set(np.unique(np.asarray(y_new)).tolist()) <= set(np.unique(np.asarray(call.values["y"])).tolist())


def likelihoods(value, call):
    assert np.isfinite(value).all()


def shares(p, call):
    assert np.all((np.asarray(p) >= 0.0) & (np.asarray(p) <= 1.0 + 1e-12))


def sampled(states, call):
    assert np.isin(np.asarray(states), (0, 1)).all()


ROWS = {"X": ("X", "pd.DataFrame(X)"), "y": ("y", "np.where(y > 0, 'a', 'b')")}
WEIGHTS = {"sample_weight": ("None", "np.ones(40)", "np.arange(40.0)")}
SAMPLER = {"mixing": ("0.5", "0.0", "1.0"), "sampling_strategy": ("'auto'", "1"), "random_state": ("0", "None")}
RBM = ("rbal.RBM(n_hidden=2, n_epochs=1, n_chains=5, progress=False)",)
CODED = {
    "X": ("STATES", "X"),
    "y": ("y",),
    "rbm": RBM,
    "n_states": ("None", "3"),
    "n_bins": ("10", "3"),
    "steps": ("1", "2"),
    "random_state": ("0",),
}
CODED_OPTIONAL = (
    "n_states",
    "n_bins",
    "steps",
    "random_state",
    "mixing",
    "over_range",
    "under_range",
    "max_tries",
    "sampling_strategy",
    "k_neighbors",
)
TRIAL = {
    "rng": ("np.random.default_rng(0)",),
    "classes": ("CLASSES",),
    "alpha_pos": ("1.0", "0.5"),
    "alpha_neg": ("2.0",),
}

CASES = [
    Case("svm_fit", ROWS | WEIGHTS | {"lam": ("1.0", "0.01"), "loss": ("'hinge'", "'squared_hinge'", "'logistic'"), "kappa": ("1.0",), "kappa_neg": ("0.5",), "fit_bias": ("True", "False"), "n_states": ("None",), "tol": ("1e-5",), "max_iter": ("1000000", "10")}, permuted, optional=("sample_weight", "lam", "loss", "kappa", "kappa_neg", "fit_bias", "n_states", "tol", "max_iter"), covers=("learners.LinearSVM",), examples=120),
    Case("perceptron_fit", ROWS | WEIGHTS | {"kappa": ("1.0", "0.1"), "kappa_neg": ("0.5",), "n_states": ("None",), "sat": ("'largest_margin'", "'typical'"), "sweeps": ("5",), "tol": ("1e-5",), "max_iter": ("2000",), "warm_start": ("False", "True"), "random_state": ("0",)}, optional=("sample_weight", "kappa", "kappa_neg", "n_states", "sat", "sweeps", "tol", "max_iter", "warm_start", "random_state"), covers=("learners.SphericalPerceptron",), examples=60),
    Case("trained_orders", {"moments": ("FROM_ROWS",)}, covers=("learners.OrderParameters",)),
    Case("learners.order_parameters", {"scores": ("SCORES",), "y": ("y",)}),
    Case("random_mix", ROWS | SAMPLER, labels, optional=("mixing", "sampling_strategy", "random_state"), covers=("samplers.RandomMixSampler",), examples=60),
    Case("informed", CODED | SAMPLER | {"over_range": ("(0.0, 1.0)",), "under_range": ("(0.05, 0.95)",), "max_tries": ("50", "2")}, labels, optional=CODED_OPTIONAL, covers=("samplers.LikelihoodInformedSampler",), examples=30),
    Case("smote", CODED | {"sampling_strategy": ("'auto'",), "k_neighbors": ("5", "1")}, labels, optional=CODED_OPTIONAL, covers=("samplers.RBMSMOTE",), examples=30),
    Case("boltzmann", {"X": ("BITS", "STATES"), "y": ("None",), "n_hidden": ("2", "5"), "n_states": ("2", "3"), "hidden": ("'bernoulli'", "'gaussian'"), "n_epochs": ("1",), "batch_size": ("10", "100"), "n_chains": ("5",), "n_gibbs": ("1", "2"), "learning_rate": ("None", "0.1"), "l2": ("1e-3",), "ais_every": ("None", "1"), "warm_start": ("False",), "random_state": ("0",), "progress": ("False",)}, likelihoods, optional=("y", "n_hidden", "hidden", "n_epochs", "batch_size", "n_chains", "n_gibbs", "learning_rate", "l2", "ais_every", "warm_start", "random_state", "progress"), covers=("rbm.RBM", "rbm.RBM.fit", "rbm.RBM.partial_fit", "rbm.RBM.transform", "rbm.RBM.free_energy", "rbm.RBM.score_samples"), errors=(ValueError, TypeError, FloatingPointError), examples=60),
    Case("BOLTZMANN.sample", {"n": ("1", "5"), "init": ("None", "BITS[:2]"), "steps": ("1", "10"), "random_state": ("0",)}, sampled, covers=("rbm.RBM.sample",)),
    Case("BOLTZMANN.log_partition", {"X": ("None", "BITS"), "n_chains": ("5",), "n_betas": ("5",), "random_state": ("0",), "max_betas": ("10",)}, covers=("rbm.RBM.log_partition", "rbm.LogPartition")),
    Case("BOLTZMANN.score", {"X": ("BITS",), "y": ("None",)}, likelihoods, covers=("rbm.RBM.score",)),
    Case("saved", {"path": ("FOLDER / 'machine'",)}, covers=("rbm.RBM.save", "rbm.RBM.load"), errors=(ValueError, TypeError, OSError)),
    Case("experiments.run", {"trial": ("trial",), "grid": ("{'n': [1, 2]}", "[{'n': 1}]", "{'n': [1], 'scale': [1.0, 2.0]}"), "trials": ("1", "2"), "seed": ("0", "7"), "store": ("None",), "n_jobs": ("1",), "progress": ("False",)}, optional=("trials", "seed", "store"), errors=(ValueError, TypeError, OSError, rbal.experiments.TrialError), covers=("experiments.TrialError",), examples=60),
    Case("experiments.train", TRIAL | {"kappa": ("1.0", "0.5"), "model": ("'perceptron'",), "lam": ("None",), "weight_pos": ("2.0",), "weight_neg": ("1.0",), "sat": ("'largest_margin'", "'typical'"), "n_test": ("50",), "answers": ("False",)}, nan=True, effort=("alpha_pos", "alpha_neg"), examples=40),
    Case("experiments.train", TRIAL | {"model": ("'svm'",), "lam": ("1.0", "0.1"), "n_test": ("50",)}, optional=(), nan=True, effort=("alpha_pos", "alpha_neg"), examples=20),
    Case("experiments.generator", {"seed": ("0",), "key": ("TABLE.seed[0]",)}),
    Case("experiments.summary", {"table": ("TABLE",), "by": ("None", "'n'", "['n', 'scale']")}),
    Case("experiments.pivot", {"table": ("TABLE",), "output": ("'mean'",), "by": ("'n'",), "scale": ("1.0",)}, words=("trial", "cell"), nan=True),
    Case("experiments.shared_test", {"values": ("np.random.default_rng(0).random((3, 10)) > 0.5", "np.random.default_rng(0).random((3, 10))"), "y": ("None", "np.arange(10) % 2")}, covers=("experiments.SharedTest",)),
    Case("synthetic.ising", {"m": ("0.3",), "delta": ("1.0",), "L": ("8",), "cov": ("None",)}, optional=("m", "cov")),
    Case("synthetic.potts", {"M": ("np.full((4, 3), 1 / 3)",), "delta": ("np.tile([0.2, -0.1, -0.1], (4, 1))",), "correlation": ("None", "np.eye(4)")}),
    Case("synthetic.potts_model", {"fields_pos": ("np.zeros((3, 2))",), "fields_neg": ("np.ones((3, 2))",), "couplings": ("np.zeros((3, 2, 3, 2))", "np.zeros((6, 6))"), "couplings_neg": ("None",), "n_chains": ("5",), "burn_in": ("2",), "thin": ("1",), "n_moments": ("100",), "rng": ("0",), "progress": ("False",)}, optional=("couplings_neg", "burn_in", "thin")),
    Case("synthetic.fit_potts_model", {"M": ("np.full((3, 2), 0.5)",), "cov": ("np.kron(np.eye(3), [[0.25, -0.25], [-0.25, 0.25]])",), "n_chains": ("20",), "n_iter": ("2",), "sweeps": ("1",), "n_samples": ("100",), "tol": ("0.5",), "rng": ("0",), "progress": ("False",)}, optional=("sweeps",)),
    Case("synthetic.gaussian", {"mean_pos": ("np.ones(5)",), "mean_neg": ("np.zeros(5)",), "cov": ("COV",)}),
    Case("synthetic.random_gaussian", {"rng": ("0",), "L": ("5",), "ratio": ("2.0",), "scale": ("1.0",)}),
    Case("synthetic.d1", {"L": ("5",)}),
    Case("synthetic.d2", {"rng": ("0",), "L": ("5",), "Q": ("3",)}, words=("M",)),  # M has Q states
    Case("synthetic.d3", {"rng": ("0",), "L": ("5",), "Q": ("3",)}, words=("M",)),
    Case("CLASSES.sample", {"n_pos": ("3",), "n_neg": ("0", "5"), "rng": ("np.random.default_rng(0)",)}),
    Case("lattice.load_dimers", {"state": ("'bounded'",), "compound": ("'A+C'",)}, examples=15),
    Case("lattice.dimer_info", {"state": ("'bounded'",), "compound": ("'A+C'",)}, nan=True, examples=15),
    Case("lattice.load_structures", {}, examples=1),
    Case("lattice.encode", {"sequences": ("'ACY'", "['ACY', 'DDA']")}, examples=20),
    Case("lattice.decode", {"states": ("[0, 1, 19]", "CHAINS")}, examples=20),
    Case("lattice.enumerate_walks", {"shape": ("(2, 2, 2)", "(1, 2, 3)")}, examples=20),
    Case("lattice.contacts", {"walks": ("FOLDS.walks[:3]",)}, examples=20),
    Case("lattice.dock", {"first": ("FOLDS.walks[0]",), "second": ("FOLDS.walks[1]",), "orientation": ("0", "143")}, examples=20),
    Case("lattice.dimer_contacts", {"first": ("FOLDS.walks[0]",), "second": ("FOLDS.walks[1]",)}, examples=20),
    Case("lattice.energies", {"sequences": ("CHAINS", "'A' * 27"), "structures": ("FOLDS",), "energy": ("None", "np.eye(20)")}, examples=20),
    Case("lattice.p_nat", {"sequences": ("CHAINS", "'A' * 27"), "structures": ("FOLDS",), "native": ("0", "29"), "energy": ("None", "np.eye(20)")}, shares, examples=20),
    Case("lattice.p_int", {"states": ("PAIRS",), "docks": ("DOCKS",), "chi": ("1.0", "0.0"), "energy": ("None", "np.eye(20)")}, shares, examples=20),
    Case("lattice.representative_structures", {"n": ("5",), "rng": ("0",)}, optional=(), examples=8),
    Case("lattice.sample_dimers", {"structures": ("FOLDS",), "first": ("0",), "second": ("1",), "chi": ("1.0",), "n_samples": ("2",), "n_chains": ("2",), "burn_in": ("20",), "thin": ("1",), "p_min": ("0.0", "0.1"), "energy": ("None",), "swap": ("None",), "rng": ("0",), "n_jobs": ("1",), "progress": ("False",)}, optional=("energy", "swap"), words=("traces",), errors=(ValueError, TypeError, RuntimeError), nan=True, examples=15),
    Case("lattice.autocorrelation", {"states": ("np.random.default_rng(0).integers(0, 3, (10, 4, 5))",), "lags": ("[0, 1]", "3")}, nan=True, examples=20),
    Case("lattice.autocorrelation_time", {"states": ("np.random.default_rng(0).integers(0, 3, (10, 4, 5))",)}, nan=True, examples=20),
    Case("lattice.settling_time", {"traces": ("np.random.default_rng(0).normal(size=(4, 100, 2))",), "batch": ("5",)}, nan=True, examples=20),
    Case("images.sauvola_threshold", {"grey": ("np.random.default_rng(0).random((2, 12, 12))", "np.zeros((12, 12))"), "window": ("8", "3"), "k": ("0.05",)}, nan=True, examples=20),
    Case("images.load_mnist", {"task": ("'parity'",), "test": ("'official'",), "n_test": ("10",), "random_state": ("0",)}, examples=12),
    Case("plotting.margin_color", {"kappa": ("1.0", "0.3")}),
    Case("plotting.dots", {"ax": ("AXES",), "x": ("np.arange(3)",), "trials": ("np.ones((2, 3))",)}, covers=("plotting.dots",)),
    Case("studies.holm", {"p": ("[0.01, 0.5]",)}, nan=True),
    Case("studies.clustered", {"differences": ("[0.1, 0.2, -0.1, 0.4]",), "source": ("['a', 'a', 'b', 'c']",), "level": ("0.95",)}, covers=("studies.Clustered",)),
    Case("studies.stored", {"name": ("'sampling'",), "folder": ("None",)}, errors=(ValueError, TypeError, OSError)),
    Case("check_answer", {"name": tuple(map(repr, rbal_book.lessons._exercises.EXERCISES))[:2], "answer": ("0.5", "(0.1, 0.2)")}, optional=(), covers=("lessons.check",)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.target)
def test_named_errors_or_sound_answers(case):
    hold(case)
