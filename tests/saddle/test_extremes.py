"""What is asked at the ends of the doubles is answered or refused, and Ctrl-C is heard in every long computation."""

import functools
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import naive
import numpy as np
import psutil
import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr
from sklearn.exceptions import ConvergenceWarning

import rbal
from rbal._support import parallel
from rbal.datasets import _gibbs
from rbal.learners import _descent, _perceptron
from rbal.metrics import Metrics
from rbal_book.datasets import lattice

HERE = Path(__file__).parent
PATHS = [str(HERE), str(HERE.parent)]
SIZES = [1e-300, 1e-100, 1e-30, 1e-6, 1e-3, 0.1, 1.0, 1.0, 10.0, 1e3, 1e4, 1e10, 1e100, 1e300]


# ---- few samples


def without_data(moments, alpha, kappa):
    """(q, r, b, w) to leading order in vanishing forces: weights spread evenly on the sphere, pulled a little."""
    lam, d2 = moments.eigenvalues, moments.delta_sq
    zeta = moments.L / (moments.L * moments.Q)
    w = lam.sum() / (moments.L * zeta)

    def log_h(t):
        return -0.5 * t * t - 0.5 * np.log(2.0 * np.pi) - log_ndtr(-t)

    def gap(b):
        return np.log(alpha[0] / alpha[1]) + log_h((kappa + b) / np.sqrt(w)) - log_h((kappa - b) / np.sqrt(w))

    b = brentq(gap, -100.0, 100.0, xtol=1e-15)
    f = np.exp([log_h((kappa + b) / np.sqrt(w)), log_h((kappa - b) / np.sqrt(w))]) / np.sqrt(w)
    q_hat, r_hat = np.sum(alpha * f**2), 0.5 * np.sum(alpha * f)
    q = (q_hat * np.sum(lam**2) + r_hat**2 * np.sum(lam * d2)) / (moments.L * zeta**2)
    return q, r_hat * d2.sum() / (moments.L * zeta), b, w


@pytest.mark.parametrize("function", [rbal.solve, rbal.sweep])
def test_more_samples_than_can_be_summed(function):
    moments = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    with pytest.raises(ValueError, match=r"alpha_neg must be > 0 and <= 1e\+100, got 1e\+300"):
        function(moments, 1.0, 1e300)


@pytest.mark.parametrize("alpha_neg", [None, 1.0])
@pytest.mark.parametrize("alpha", [1e-10, 1e-30, 1e-50, 1e-100, 1e-200, 1e-300])
def test_hardly_any_sample(alpha, alpha_neg):
    moments = rbal.Moments.real(0.1 * np.ones(4), np.zeros(4), [0.5, 0.8, 1.0, 1.5])
    sizes = np.array([alpha, alpha if alpha_neg is None else alpha_neg])
    sol = rbal.solve(moments, *sizes, 0.5)
    assert sol.phase == "SAT"
    # what is left out is of the order of the forces, some ten times α; r is solved to 1e-10 √q
    q, r, b, w = without_data(moments, sizes, 0.5)
    np.testing.assert_allclose([sol.q, sol.b, sol.x], [q, b, w], rtol=1e-7)
    assert sol.r == pytest.approx(r, rel=1e-7, abs=2e-10 * np.sqrt(q))
    assert 0.5 <= sol.metrics.ba() < 0.5 + 1e-4
    turned = rbal.solve(moments, *sizes[::-1], 0.5)
    assert turned.b == pytest.approx(-sol.b, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_units_do_not_matter(scale):
    # features, weights and margin in other units: q and r follow
    lam, shift = np.array([0.5, 0.8, 1.5]), np.array([0.3, 0.0, 0.4])
    sol = rbal.solve(rbal.Moments.real(shift, 0 * shift, lam), 2.0, 5.0, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if scale > 1e20:  # refused, since no solver resolves it
            with pytest.raises(ValueError, match=r"squared shifts must be at most 1e\+40, got 1\.5e\+"):
                rbal.solve(rbal.Moments.real(scale * shift, 0 * shift, scale**2 * lam), 2.0, 5.0)
            return
        scaled = rbal.solve(rbal.Moments.real(scale * shift, 0 * shift, scale**2 * lam), 2.0, 5.0, scale * 0.5)
        weighted = rbal.solve(
            rbal.Moments.real(shift, 0 * shift, lam), 2.0, 5.0, 0.5, weight_pos=scale, weight_neg=scale
        )
    if scaled.converged:
        np.testing.assert_allclose([scaled.q / scale**2, scaled.r / scale], [sol.q, sol.r], rtol=1e-8)
    if weighted.converged:
        np.testing.assert_allclose([weighted.q, weighted.r, weighted.b], [sol.q, sol.r, sol.b], rtol=1e-8)
    assert scaled.converged or abs(np.log10(scale)) > 10
    assert weighted.converged or scale != 1e8


@pytest.mark.parametrize("q", [1e-8, 1e-30, 1e-100, 1e-290])
@pytest.mark.parametrize(("kappa", "mu"), [(0.5, 0.3), (0.5, 8.0), (0.5, -1e6)])
def test_forces_of_the_sat_phase_where_scores_hardly_vary(q, kappa, mu):
    # the Gaussian is then a point: f = h(t)/√w at t = (κ - μ)/√w
    from rbal.losses._constraints import inequality, inequality_force

    w = 0.7
    h, excess = naive.inverse_mills(np.array((kappa - mu) / np.sqrt(w)))
    expected = [h / np.sqrt(w), h * h / w, h * excess / w]
    got = inequality(kappa, 1.0, w, mu, q)
    np.testing.assert_allclose(got[:3], expected, rtol=1e-5 if q > 1e-20 else 1e-12)
    np.testing.assert_allclose(inequality_force(kappa, 1.0, w, mu, q), (got[0], got[3]), rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e-10, 1e-50, 1e-300])
def test_training_scores_of_hardly_any_sample(alpha):
    moments = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    sol = rbal.solve(moments, alpha, alpha, 0.5)
    scores = np.linspace(0.5, 9.0, 4001)
    density, atom = rbal.train_density(sol, scores, 1)
    cut = np.exp(-0.5 * scores**2 / sol.x) / np.sqrt(2 * np.pi * sol.x) / np.exp(log_ndtr(-0.5 / np.sqrt(sol.x)))
    np.testing.assert_allclose(density, cut, rtol=1e-4)
    assert atom == 0.0


# ---- the surface and the closed forms


@pytest.mark.parametrize("kappa", [1e2, 1e3, 1e6])
def test_critical_size_at_large_margins(kappa):
    # every sample is far below: (κ - u0)² on average, and α_c = 1/(1 + κ²) as Gardner has it
    noise = rbal.Moments.real([0.0], [0.0], [1.0])
    assert rbal.critical_alpha(noise, kappa, fit_bias=False) == pytest.approx(rbal.gardner_capacity(kappa), rel=1e-6)


def test_critical_size_beyond_reach_says_so():
    noise = rbal.Moments.real([0.0], [0.0], [1.0])
    with pytest.warns(ConvergenceWarning, match="1 of 1 critical sizes did not converge"):
        assert np.isnan(rbal.critical_alpha(noise, 1e200))


@pytest.mark.parametrize(("kappa", "capacity"), [(-3.001, 4934.0777540), (-10.0, 6.8826549521445e24), (-40.0, np.inf)])
def test_capacity_at_negative_margins(kappa, capacity):
    # by the integral itself, ∫ v² φ(v - κ) dv = φ(κ) ∫ v² exp(κv - v²/2) dv
    v = np.linspace(0.0, 60.0, 600_001) / max(1.0, -kappa)
    inner = np.trapezoid(v**2 * np.exp(kappa * v - 0.5 * v**2), v)
    with np.errstate(over="ignore", divide="ignore"):
        expected = np.sqrt(2 * np.pi) * np.exp(0.5 * kappa**2) / inner
    assert rbal.gardner_capacity(kappa) == pytest.approx(capacity, rel=1e-9)
    assert rbal.gardner_capacity(kappa) == pytest.approx(expected, rel=1e-6) or not np.isfinite(capacity)


def test_capacity_is_continuous_where_the_formula_changes():
    a, b = rbal.gardner_capacity(np.nextafter(-3.0, [-4.0, 0.0]))
    assert a == pytest.approx(b, rel=1e-11)


def test_large_margin_of_any_size_is_refused_or_right():
    moments = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    limit = rbal.large_margin(moments, 2.0, 5.0, weight_pos=5.0, weight_neg=2.0)
    scaled = rbal.large_margin(moments, 2.0, 5.0, weight_pos=5e50, weight_neg=2e50)
    np.testing.assert_allclose(scaled[:3], [limit.q, limit.r, limit.b], rtol=1e-12)
    for size in (1e-200, 1e200):
        with pytest.raises(ValueError, match="must be of sizes whose squares are doubles"):
            rbal.large_margin(moments, 1.0, 1.0, weight_pos=size, weight_neg=size)


def test_a_shift_without_a_square_is_refused():
    with pytest.raises(ValueError, match="delta must have squares that are doubles"):
        rbal.solve(rbal.Moments.ising(m=0.0, delta=1e200, L=3), 1.0, 1.0)


@pytest.mark.parametrize("q", [0.0, 1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_metrics_of_any_size_are_metrics(q):
    r, b, threshold = np.meshgrid(
        [0.0, 1e-300, -1.0, 1.0, 1e300, -1e300], [0.0, 1.0, -1e150, 1e300], [0.0, 1.0, np.inf, -np.inf, 1e300]
    )
    m = Metrics(q, r, b)
    for name in ("tpr", "fpr", "tnr", "fnr", "ba"):
        assert np.all(np.abs(getattr(m, name)(threshold) - 0.5) <= 0.5)
    for name in ("acc", "gen_error", "ppv", "npv", "fdr", "fomr", "f1", "fm", "mcc"):
        for phi in (0.0, 1e-300, 0.5, 1.0):
            assert np.all(np.abs(getattr(m, name)(phi, threshold)) <= 1.0)
    assert np.all(np.abs(m.auprc(0.3) - 0.5) <= 0.5 + 1e-12)
    assert not np.isnan(m.gen_loss(0.3)).any()
    assert not np.isnan(m.roc()).any()


def test_a_score_that_does_not_vary_has_no_density():
    with pytest.raises(ValueError, match="q must be > 0 for a density"):
        Metrics(0.0, 1.0, 0.0).density(0.0, 1)


# ---- a scan


def extreme_moments(rng):
    kind, D = rng.integers(4), int(rng.choice([1, 2, 5, 20]))
    if kind == 0:
        m, delta = rng.choice([0.0, 0.4, 1 - 1e-12]), rng.choice([0.0, 1.0, 1e-10, 1e3, 1e-150, 1e100])
        return rbal.Moments.ising(m=m, delta=delta, L=100)
    lam = rng.uniform(0.5, 1.5, D)
    if kind == 1:
        lam = 10.0 ** rng.choice([-300, -100, -10, -3, 0, 0, 0, 1, 3, 10, 100, 300], D)
    elif kind == 2:
        lam[1:] *= rng.random(D - 1) < 0.5
    else:
        lam *= 10.0 ** rng.choice([-300, -10, 10, 100])
    delta = rng.normal(size=D) * rng.choice([0.0, 1.0, 1e-8, 1e8, 1e-150, 1e100])
    return rbal.Moments.real(delta, np.zeros(D), lam)


def extreme_problem(rng):
    def size():
        return float(rng.choice(SIZES)) if rng.random() < 0.5 else float(10 ** rng.uniform(-3, 4))

    model = str(rng.choice(rbal.saddle.MODELS))
    options = {
        "kappa": float(rng.choice([0.0, 1e-300, 1e-3, 0.5, 1.0, 10.0, 100.0, 1e4, 1e100, 1e300])),
        "loss": str(rng.choice(["hinge", "squared_hinge", "square", "logistic"])),
        "model": model,
        "lam": size() if model == "svm" else None,
        "weight_pos": size() if rng.random() < 0.4 else 1.0,
        "weight_neg": size() if rng.random() < 0.3 else 1.0,
        "fit_bias": bool(rng.random() < 0.7),
    }
    return extreme_moments(rng), size(), size(), options


def look_at(moments, alpha_pos, alpha_neg, options):
    """One problem: a solution that is one, or NaN that says so, or an error that names what must be."""
    try:
        sol = rbal.solve(moments, alpha_pos, alpha_neg, **options)
    except ValueError as error:
        if "must be" in str(error) or "must have" in str(error):
            return
        raise
    numbers = np.array([sol.q, sol.r, sol.b, sol.x, sol.train_loss, sol.train_error])
    if not sol.converged:
        assert np.isnan(numbers).all(), numbers
        return
    assert np.isfinite(numbers).all(), numbers
    assert sol.residual <= 1e-10
    m = sol.metrics
    some = [m.ba(), m.auc(), m.best_ba(), m.f1(0.3), m.ppv(0.3), m.auprc(0.3), m.gen_error(0.3), sol.train_error]
    assert np.all(np.abs(np.array(some) - 0.5) <= 0.5 + 1e-12), some
    if sol.phase != "COLLAPSED":
        scores = 0.5 * sol.r - sol.b + np.sqrt(sol.variance) * np.linspace(-5.0, 5.0, 11)
        assert not np.isnan(rbal.train_density(sol, scores, 1)[0]).any()
        assert not np.isnan(rbal.test_density(sol, scores, 1)).any()


def scan(seed, n):
    """Print what went wrong, problem by problem."""
    rng = np.random.default_rng(seed)
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", ConvergenceWarning)
    for _ in range(n):
        problem = extreme_problem(rng)
        try:
            look_at(*problem)
        except Exception as error:
            print(problem, problem[0].eigenvalues, problem[0].delta_sq, repr(error), flush=True)


def program(code):
    """Command that runs some code beside this file."""
    return [sys.executable, "-c", f"import sys; sys.path[:0] = {PATHS!r}\n" + textwrap.dedent(code)]


@pytest.mark.slow
def test_extreme_problems_are_solved_or_refused():
    # in a process of its own, so that a search without end would end here; the time is no claim about speed
    done = subprocess.run(
        program("from test_extremes import scan\nscan(16, 120)"),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


# ---- Ctrl-C

LONG = {
    "sweep": """
        classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
        rbal.sweep(classes, 2.0, np.linspace(1.0, 9.0, 200), 0.5, loss="logistic")
        start()
        rbal.sweep(classes, 2.0, np.linspace(1.0, 9.0, 300_000), 0.5, loss="logistic")
    """,
    "critical margins": """
        classes = rbal.Moments.real(rng.normal(size=2000), np.zeros(2000), rng.uniform(0.5, 1.5, 2000))
        rbal.critical_margin(classes, 2.0, 2.0)
        start()
        rbal.critical_margin(classes, 2.0, np.linspace(1.0, 9.0, 100_000))
    """,
    "perceptron": """
        y = np.repeat([1, -1], [6000, 12000])
        X = rng.normal(size=(18000, 600)) + 0.02 * y[:, None]
        rbal.SphericalPerceptron(kappa=0.3).fit(X[5900:6100, :20], y[5900:6100])
        start()
        rbal.SphericalPerceptron(kappa=0.3).fit(X, y)
    """,
    "typical weights": """
        X, y = rng.normal(size=(60, 100)), np.repeat([1, -1], 30)
        rbal.SphericalPerceptron(kappa=0.1, sat="typical", sweeps=1).fit(X, y)
        start()
        rbal.SphericalPerceptron(kappa=0.1, sat="typical", sweeps=10**7).fit(X, y)
    """,
    "SVM": """
        X, y = rng.normal(size=(6000, 50)), np.repeat([1, -1], 3000)
        rbal.LinearSVM(lam=1.0).fit(X[2900:3100], y[2900:3100])
        start()
        rbal.LinearSVM(lam=1e-9).fit(X, y)
    """,
    "Gibbs": """
        from rbal.datasets import _gibbs
        fields, J = np.zeros((40, 20)), np.zeros((40, 20, 40, 20))
        _gibbs.draw(fields, J, _gibbs.Chains(2, 1, 1), 4, rng)
        start()
        _gibbs.draw(fields, J, _gibbs.Chains(200_000, 10, 1), 400_000, rng)
    """,
    "lattice": """
        from rbal_book.datasets import lattice
        structures = lattice.load_structures()
        given = dict(first=structures.native["A"], second=structures.native["C"], chi=0.1, n_jobs=1, progress=False)
        lattice.sample_dimers(structures, n_samples=4, n_chains=2, burn_in=10, thin=5, **given)
        start()
        lattice.sample_dimers(structures, n_samples=4, n_chains=2, burn_in=50_000, thin=5, **given)
    """,
    "RBM.sample": """
        rbm = machine()
        rbm.sample(1000, steps=2)
        start()
        rbm.sample(1000, steps=1_000_000)
    """,
    "RBM.log_partition": """
        rbm = machine()
        rbm.log_partition(n_betas=2, max_betas=2)
        start()
        rbm.log_partition(n_betas=1_000_000, max_betas=1_000_000)
    """,
    "RBM.log_partition, annealing": """
        rbm = machine()
        t, rng = rbm._training, np.random.default_rng(0)
        path = _partition.path_to(t.machine, t.base)
        ends = lambda own: path.follow(path.first(50, own), np.linspace(0.0, 1.0, n), own)
        n = 2
        _machine.in_pieces(ends, _machine.seeds(rng, 4))
        start()
        n = 1_000_000
        _machine.in_pieces(ends, _machine.seeds(rng, 4))
    """,
}


def busy(process, seconds=1.0):
    """Wait until a process has computed for some seconds: it is in the middle of something then, on any machine."""
    until = sum(psutil.Process(process.pid).cpu_times()[:2]) + seconds
    while process.poll() is None and sum(psutil.Process(process.pid).cpu_times()[:2]) < until:
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("what", LONG)
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs signals")
def test_ctrl_c_is_heard(what):
    code = """
        import numpy as np, rbal
        rng = np.random.default_rng(0)
        start = lambda: print("started", flush=True)

        def machine():
            global _machine, _partition
            import warnings
            from rbal.rbm import _machine, _partition
            warnings.simplefilter("ignore")  # that so short an annealing is not reliable
            _machine.get_num_threads = lambda: 2  # in threads, of which only the main one hears Ctrl-C
            return rbal.RBM(30, n_epochs=1, random_state=0, progress=False).fit(rng.integers(0, 2, (200, 300)))
    """
    code = textwrap.dedent(code) + textwrap.dedent(LONG[what]) + 'print("done")\n'
    # what is started in the background of a shell ignores Ctrl-C, and so would what we start
    mind = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        program(code),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=mind,
    )
    try:
        assert process.stdout.readline() == "started\n", process.stderr.read()
        busy(process)
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert "KeyboardInterrupt" in errors, errors
    assert printed == ""


def test_pieces_cover_a_range_and_adapt():
    clock = iter(np.cumsum([0, 0.01, 0, 0.01, 0, 0.2, 0, 0.9, 0, 0.9, 0, 0.01, 0, 0.01, 0, 0.01]).tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel.time, "perf_counter", lambda: next(clock))
        cut = list(parallel.pieces(130))
    sizes = [stop - start for start, stop in cut]
    assert sizes == [8, 16, 32, 32, 16, 8, 16, 2]
    assert cut[0][0] == 0
    assert cut[-1][1] == 130
    assert all(a[1] == b[0] for a, b in itertools.pairwise(cut))
    assert list(parallel.pieces(0)) == []


def one_by_one(n, size=8):
    return ((i, i + 1) for i in range(n))


def at_once(n, size=8):
    return [(0, n)] if n else []


@pytest.mark.parametrize("n", [1, 63, 64, 65, 300])
@pytest.mark.parametrize("options", [{}, {"loss": "squared_hinge"}, {"model": "svm", "lam": 0.1}])
def test_a_sweep_in_pieces_is_the_same(monkeypatch, n, options):
    classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    found = []
    for pieces in (one_by_one, at_once):
        monkeypatch.setattr(parallel, "pieces", pieces)
        sol = rbal.sweep(classes, 0.5, np.geomspace(0.01, 9.0, n), 0.5, **options)
        found.append(np.array([sol.q, sol.r, sol.b, sol.x, sol.n_iter]))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("kappa", [0.05, 0.3])
def test_a_descent_in_pieces_is_the_same(monkeypatch, kappa):
    rng = np.random.default_rng(4)
    y = np.repeat([1.0, -1.0], [60, 140])
    X = (rng.normal(size=(200, 30)) + 0.1 * y[:, None]) / np.sqrt(30)
    problem = _perceptron.Problem(X, y, np.ones(200), kappa, np.sqrt(30))
    start = problem.split()
    found = []
    for pieces in (one_by_one, at_once):
        monkeypatch.setattr(parallel, "pieces", pieces)
        found.append(_descent.descend(problem.samples, *start[:3], 2000))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
    assert found[0][-1] > 10


def test_typical_weights_in_pieces_are_the_same(monkeypatch):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(30, 40)) / np.sqrt(40), np.repeat([1.0, -1.0], 15)
    problem = _perceptron.Problem(X, y, np.ones(30), 0.1, np.sqrt(40))
    J, b, _ = problem.largest_margin()
    found = []
    for pieces in (one_by_one, at_once):
        monkeypatch.setattr(parallel, "pieces", pieces)
        found.append(problem.typical(J, b, 3, np.random.default_rng(6)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_chains_in_parts_are_the_same(monkeypatch):
    rng = np.random.default_rng(7)
    fields, J = rng.normal(size=(5, 3)), np.zeros((5, 3, 5, 3))
    J[0, :, 1, :] = rng.normal(size=(3, 3))
    J[1, :, 0, :] = J[0, :, 1, :].T
    X = rng.integers(3, size=(20, 5))
    found = []
    for at_once in (1, 10**9):
        monkeypatch.setattr(_gibbs, "AT_ONCE", at_once)
        moved = X.copy()
        _gibbs.advance(moved, fields, J, 3, np.random.default_rng(8))
        found.append(moved)
    np.testing.assert_array_equal(*found)
    assert not np.array_equal(found[0], X)


def test_dimers_in_pieces_are_the_same(monkeypatch):
    toy = lattice.Structures(lattice.enumerate_walks((2, 2, 2)))
    energy = np.random.default_rng(9).normal(size=(3, 3))
    found = []
    for pieces in (one_by_one, at_once):
        monkeypatch.setattr(parallel, "pieces", pieces)
        sample = lattice.sample_dimers(
            toy, first=0, second=1, chi=1.0, n_samples=8, n_chains=2, burn_in=20, thin=5, p_min=0.3,
            energy=energy + energy.T, progress=False, n_jobs=1,
        )  # fmt: skip
        found.append((sample.states, sample.traces))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_errors_and_settings_come_from_aside():
    import sklearn

    def settings():
        return sklearn.get_config()["assume_finite"]

    with sklearn.config_context(assume_finite=True):
        assert parallel.aside(settings)
    assert not parallel.aside(settings)
    with pytest.raises(ZeroDivisionError):
        parallel.aside(lambda: 1 / 0)
