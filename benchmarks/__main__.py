"""Print every benchmark: ``python -m benchmarks``, or some: ``python -m benchmarks training first-use``."""

import os
import platform
import subprocess
import sys
import time

import numpy as np

import rbal
from rbal.datasets import synthetic
from rbal_book.datasets import images

from . import advice, compiled, dense, first_use, generative, interactive, kernels, many, mixtures, training


def best_of(function, repeats):
    """Shortest of some runs, in seconds: the run least disturbed by the rest of the machine."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def features(L, seed=2024):
    """Correlated real features and two means, as a (means, covariance) problem of size L."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(L, L)) / np.sqrt(L)
    C = mix @ mix.T + 0.1 * np.eye(L)
    delta = rng.normal(size=L)
    return C, delta, (delta / (2 * np.sqrt(L)), -delta / (2 * np.sqrt(L)))


def one_solve(L=100):
    """One solve after compilation, from moments to order parameters; the eigendecomposition is made once before."""
    C, delta, means = features(L)
    classes = rbal.Moments.real(*means, C)
    sol = rbal.solve(classes, 2.0, 5.0, 0.5)
    ours = best_of(lambda: [rbal.solve(classes, 2.0, 5.0, 0.5) for _ in range(1000)], 5) / 1000
    theirs = best_of(lambda: dense.solve(C, delta, 2.0, 5.0, 0.5), 3)
    off = np.abs(np.subtract(dense.solve(C, delta, 2.0, 5.0, 0.5), (sol.q, sol.r, sol.b))).max()
    return f"one solve, L = {L}", ours, theirs, 1000, f"the baseline is off by {off:.0e}"


def dense_sweep(L=784, points=100, baseline_points=1):
    """A sweep over imbalance with a dense covariance, eigendecomposition included."""
    C, delta, means = features(L)
    alpha_neg = np.linspace(0.5, 10.0, points)
    rbal.sweep(rbal.Moments.real(*means, C), 2.0, alpha_neg[:2], 0.5)
    ours = best_of(lambda: rbal.sweep(rbal.Moments.real(*means, C), 2.0, alpha_neg, 0.5), 5)
    some = alpha_neg[:: points // baseline_points][:baseline_points]
    theirs = best_of(lambda: [dense.solve(C, delta, 2.0, a, 0.5) for a in some], 1) * points / baseline_points
    note = f"baseline: {baseline_points} of {points} points in full, times {points // baseline_points}"
    return f"{points}-point sweep, L = {L}, dense", ours, theirs, 3000, note


def training_set(n_pos=300, n_neg=700, L=100):
    """A training set of the paper's first kind, as states 0 and 1."""
    X, y = synthetic.d1(L).sample(n_pos, n_neg, np.random.default_rng(2024))
    return (X > 0).astype(int), y


def published_training(kappa, ftol, claim):
    """Exact training against L-BFGS-B on the penalty, at n = 1,000 and L = 100."""
    X, y = training_set()
    clf = rbal.SphericalPerceptron(kappa=kappa, n_states=2).fit(X, y)
    ours = best_of(lambda: clf.fit(X, y), 20)
    theirs = best_of(lambda: training.penalty(X, y, kappa, ftol=ftol), 2)
    above = training.loss(X, y, training.penalty(X, y, kappa, ftol=ftol), kappa) / clf.objective_ - 1.0
    note = f"k̂ = {clf.multiplier_:+.2f}, KKT {clf.kkt_residual_:.0e}; the baseline's loss is {above:.0e} above"
    return f"κ = {kappa}, L-BFGS-B, ftol {ftol:g}", ours, theirs, claim, note


def dual_training(kappa, slack, claim):
    """Exact training against LinearSVC at the ridge λ̃ = k̂κ that makes both problems the same."""
    X, y = training_set()
    spins = 2.0 * X - 1.0
    clf = rbal.SphericalPerceptron(kappa=kappa).fit(spins, y)
    ours = best_of(lambda: clf.fit(spins, y), 20)
    Z, C = spins / np.sqrt(spins.shape[1]), 1.0 / (clf.multiplier_ * kappa)
    target = training.svm_objective(Z, y, clf.J_ / kappa, -clf.b_ / kappa, C)
    theirs, above = training.dual(Z, y, C, target, slack)
    return f"κ = {kappa}, LinearSVC within {slack:g}", ours, theirs, claim, f"it came to {above:.0e} above"


def digits():
    """Seconds for odd against even digits at n = 5,000, D = 784."""
    X, y = images.load_mnist("parity").sample(1500, 3500, np.random.default_rng(2024))
    fits = (lambda k=kappa: rbal.SphericalPerceptron(kappa=k).fit(X, y) for kappa in (0.5, 2.0))
    return [(kappa, best_of(fit, 3), goal) for kappa, goal, fit in zip((0.5, 2.0), (0.5, 0.2), fits, strict=True)]


def many_states():
    """Seconds for 200 sites of ten states: fewer samples than weights, and more."""
    rows = []
    for n in (1200, 2400):
        X, y = synthetic.d2(np.random.default_rng(0), L=200, Q=10).sample(600, n - 600, np.random.default_rng(2024))
        clf = rbal.SphericalPerceptron(kappa=2.0, n_states=10)
        rows.append((n, best_of(lambda c=clf, X=X, y=y: c.fit(X, y), 2)))
    return rows


def along_a_path(steps=21):
    """Seconds for a path of margins, with each fit started at the last one's solution, and with none."""
    X, y = training_set()
    seconds = []
    for warm in (True, False):
        clf = rbal.SphericalPerceptron(n_states=2, warm_start=warm).fit(X, y)
        path = np.linspace(1.0, 2.0, steps)
        seconds.append(best_of(lambda c=clf, p=path: [c.set_params(kappa=kappa).fit(X, y) for kappa in p], 5))
    return steps, *seconds


def best_in_turn(ways, repeats):
    """Shortest runs of several ways, a few of each in turn, so that all meet the same moods of the machine."""
    seconds = dict.fromkeys(ways, np.inf)
    for _ in range(repeats):
        for name, way in ways.items():
            seconds[name] = min(seconds[name], best_of(way, 3))
    return seconds


def boltzmann(n_epochs=20):
    """One epoch of persistent contrastive divergence, 784 × 100, batches of 100 of 5,000 digits, and what it learns."""
    X, test = minority()
    rbm = rbal.RBM(n_epochs=n_epochs, random_state=0, progress=False).fit(X)
    log_z, mean = rbm.log_partition(), -rbm.free_energy(test).mean()
    best = max(
        generative.likelihood(test, generative.scikit_learn(X, n_epochs, rate), rbm._training.base)
        for rate in (0.05, 0.1, 0.2)
    )
    note = (
        f"log-likelihood after {n_epochs} epochs {mean - log_z.value:.1f} ± {log_z.error:.1f}, "
        f"theirs {best[0]:.1f} ± {best[1]:.1f} at their best rate"
    )
    ready = X.astype(np.float32)  # so that its conversion is not timed
    ways = {"ours": lambda: rbm.partial_fit(X), "sklearn": lambda: generative.scikit_learn(ready, 1, 0.1)}
    if generative.HAS_TORCH:
        ways["torch"] = generative.Torch(X).epoch
    seconds = best_in_turn(ways, 10)
    yield "scikit-learn, BernoulliRBM", seconds["ours"], seconds["sklearn"], 4, note
    if generative.HAS_TORCH:
        yield "torch, plain", seconds["ours"], seconds["torch"], 1.5, f"on {os.cpu_count()} cores"


def minority(n=5000):
    """Digits of the class 0-4 as states 0 and 1: a training and a test set."""
    X = (images.load_mnist("five").sample(n + 1000, 0, np.random.default_rng(2024))[0] > 0).astype(np.int8)
    return X[:n], X[n:]


def long_run():
    """Seconds of the 250 epochs of the paper, and of 1,000 samples after 100 steps of each chain."""
    X, _ = minority()
    rbm = rbal.RBM(random_state=0, progress=False)
    fit = best_of(lambda: rbm.fit(X), 1)
    return fit, best_of(lambda: rbm.sample(1000, init=X, steps=100, random_state=0), 3)


def cost_against_size():
    """Time of one point of a sweep against the number of eigenvalues."""
    rows = []
    for D in (100, 1_000, 10_000, 100_000):
        rng = np.random.default_rng(D)
        classes = rbal.Moments.real(rng.normal(size=D) / np.sqrt(D), np.zeros(D), rng.gamma(2.0, 0.5, size=D) + 0.05)
        alpha_neg = np.linspace(2.0, 10.0, 128)
        rbal.sweep(classes, 2.0, alpha_neg, 0.5)
        rows.append((D, best_of(lambda c=classes, a=alpha_neg: rbal.sweep(c, 2.0, a, 0.5), 20) / alpha_neg.size))
    return rows


def many_points(n=1_000_000):
    """A million points of a sweep at L = 100."""
    C, _, means = features(100)
    classes = rbal.Moments.real(*means, C)
    rho = np.linspace(0.05, 0.95, n // 1000)
    kappa = np.geomspace(0.5, 10.0, 1000)[:, None]
    start = time.perf_counter()
    sols = rbal.sweep(classes, 8.0 * (1.0 - rho), 8.0 * rho, kappa)
    return n, time.perf_counter() - start, bool(sols.converged.all())


def start_up():
    """CPU seconds of ``import rbal``, wall seconds of the first solve in a new process with a warm cache."""
    program = (
        "import time; a = time.process_time(); import rbal; b = time.process_time(); c = time.perf_counter();"
        "rbal.solve(rbal.Moments.ising(m=0.4, delta=1.0, L=100), 2.0, 5.0, 0.5);"
        "print(b - a, time.perf_counter() - c)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(3)
    ]
    return np.min([[float(value) for value in run.stdout.split()] for run in runs], axis=0)


def ratios(title, rows):
    """Print one table against goals; a row without one is there to be seen."""
    print(title)
    print(f"  {'':36}{'ours':>12}{'baseline':>12}{'ratio':>10}{'goal':>9}")
    for name, ours, theirs, claim, note in rows:
        claim = f"{claim:,}" if claim else ""
        ratio = f"{theirs / ours:,.0f}" if theirs > 100 * ours else f"{theirs / ours:.1f}"
        print(f"  {name:36}{1e3 * ours:>9.3f} ms{1e3 * theirs:>9.0f} ms{ratio:>10}{claim:>9}   {note}")
    print()


def clusters():
    """Print the tables of mixtures, in CPU time."""
    ratios(
        "Mixtures against the damped fixed point, to a residual of 1e-10, and against two classes with one covariance",
        (mixtures.against_damping(), mixtures.against_two_classes()),
    )
    heads = ("one C", "commuting", "any", "by the clock", "first")
    print(
        f"  {'clusters':>9}{'D':>6}"
        + "".join(f"{head:>14}" for head in heads)
        + "   (ms; goal for ten, D = 784: 1,500)"
    )
    for K, D, row in mixtures.cost_against_size():
        print(f"  {K:>9}{D:>6}" + "".join(f"{value:>14.2f}" for value in row))
    print()


def many_classes():
    """Print the table of many classes, in CPU time."""
    ratios(
        "One machine for each of many classes, their overlaps and the confusion matrix, against training", many.table()
    )
    cost, error = many.regression()
    print(f"  multinomial regression, 5 classes, D = 200: {cost:.1f} s, confusion matrix within {error:.0e}\n")


def equations():
    """Print the tables of the solver."""
    ratios("Against the published way: dense A inverted in each of 150 damped steps", (one_solve(), dense_sweep()))
    clusters()
    many_classes()
    print("One point of a sweep against the number of eigenvalues D")
    for D, seconds in cost_against_size():
        print(f"  D = {D:<8,}{1e6 * seconds:>10.1f} µs{1e9 * seconds / D:>10.1f} ns per eigenvalue")
    n, seconds, converged = many_points()
    print(f"{n:,} points at L = 100: {seconds:.1f} s, {1e6 * seconds / n:.1f} µs each, all converged: {converged}\n")


def perceptrons():
    """Print the tables of training."""
    ratios(
        "Training a perceptron exactly, n = 1,000 spins of L = 100, against L-BFGS-B on the published penalty",
        [
            *(published_training(kappa, 2.2e-9, claim) for kappa, claim in ((0.4, 30), (1.0, 50), (2.0, 50))),
            *(published_training(kappa, 1e-16, 50) for kappa in (1.0, 2.0)),
        ],
    )
    ratios(
        "... and against LinearSVC (hinge, dual) at the same ridge",
        [dual_training(kappa, slack, claim) for kappa in (1.0, 2.0) for slack, claim in ((1e-4, 20), (1e-6, 20))],
    )
    for kappa, seconds, goal in digits():
        print(f"  MNIST parity, n = 5,000, D = 784, κ = {kappa}: {seconds:.2f} s (goal: {goal})")
    for n, seconds in many_states():
        print(f"  200 sites of ten states, n = {n:,}, D = 1,800, κ = 2: {seconds:.2f} s")
    steps, warm, cold = along_a_path()
    print(f"  {steps} margins from 1 to 2: {1e3 * warm:.1f} ms by warm starts, {1e3 * cold:.1f} ms without\n")


def machines():
    """Print the tables of restricted Boltzmann machines."""
    ratios("One epoch of a restricted Boltzmann machine, 784 × 100, n = 5,000, batches of 100", boltzmann())
    if not generative.HAS_TORCH:
        print("  torch is not installed: no row for it")
    fit, gibbs = long_run()
    print(f"  250 epochs: {fit:.1f} s (goal: 60); 1,000 samples of 100 steps: {gibbs:.2f} s (goal: 2)\n")


def machines_of_kernels():
    """Print the tables of kernels."""
    ratios("Predicting RBF machines against 5-fold cross-validation with SVC", [kernels.against_cross_validation()])
    seconds, missing, memory = kernels.many_rows()
    print(f"  n = 20,000 by landmarks: {seconds:.0f} s (claim: 60), {missing:.3f} left out, at most {memory:.1f} GB\n")


def widgets():
    """Print the tables of explorers."""
    ratios("One frame of a widget against a figure cleared and plotted anew", [interactive.against_naive()])
    print(f"{'':4}{'frame while a slider moves':38}{'wall':>10}{'CPU':>10}   frames a second")
    for name, data, wall, cpu in interactive.table():
        print(f"{'':4}{name + ', ' + data:38}{1e3 * wall:>7.0f} ms{1e3 * cpu:>7.0f} ms{1.0 / wall:>10.0f}")
    print()


def first_uses():
    """Print what the first answers cost."""
    print("First use in a new process that finds nothing compiled: CPU seconds, imports included")
    for name, seconds, goal in first_use.table():
        print(f"  {name:36}{seconds:>9.1f} s   (goal: {goal})")
    cpu, first = start_up()
    print(f"import rbal: {cpu:.3f} s of CPU; first solve in a new process, warm cache: {first:.2f} s\n")


def targets():
    """Print what a wheel's compiled files cost."""
    print("Compiled for this CPU, and for its family as a wheel's files are")
    for name, native, family in compiled.against_native():
        print(f"  {name:26}{1e3 * native:>9.1f} ms{1e3 * family:>9.1f} ms   {family / native - 1.0:+.0%}")
    print()


def advised():
    """Print what advice costs."""
    for kernel, goal in (("linear", 2), ("best", 10)):
        wall, cpu = advice.in_memory(kernel)
        print(f"advice on a table of 10,000 × 100, kernel={kernel!r}: {wall:.2f} s, {cpu:.2f} s of CPU (goal: {goal})")
    wall, cpu, size = advice.from_file()
    print(f"advice on a CSV file of 1,000,000 × 100 ({size:.1f} GB): {wall:.0f} s, {cpu:.0f} s of CPU (goal: 20)")


PARTS = {
    "solver": equations,
    "training": perceptrons,
    "kernels": machines_of_kernels,
    "rbm": machines,
    "widgets": widgets,
    "first-use": first_uses,
    "targets": targets,
    "advice": advised,
}


def main():
    """Print the tables, or those that are named."""
    names = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        sys.exit(f"{unknown[0]!r} must be one of {', '.join(PARTS)}")
    print(
        f"rbal {rbal.__version__}, Python {platform.python_version()}, numpy {np.__version__}, {os.cpu_count()} cores\n"
    )
    for name in names:
        PARTS[name]()


if __name__ == "__main__":
    main()
