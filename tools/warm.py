"""Compile what chapters and explorations call, so that a reader's first cell finds it done: for Binder's postBuild."""

import time

import numpy as np

import rbal
from rbal import widgets
from rbal.datasets import synthetic


def theory():
    """One solve, a sweep of one walk, and one that is shared between cores."""
    classes = rbal.Moments.ising(m=0.4, delta=1.0, L=100)
    rbal.solve(classes, alpha_pos=2.0, alpha_neg=5.0, kappa=0.5)
    for points in (8, 65):
        for options in ({"kappa": 0.5}, {"model": "svm", "lam": 1.0}, {"model": "svm", "lam": 1.0, "loss": "logistic"}):
            rbal.sweep(classes, 2.0, np.linspace(1.0, 5.0, points), **options)
    rbal.strategies.best_mixing(classes, 0.5, 5.0, 0.5)
    rbal.critical_margin(classes, 0.4, 0.4)
    rbal.critical_alpha(classes, 0.5)


def perceptron():
    """A perceptron with errors, and one without, of which a typical solution is drawn."""
    classes = synthetic.random_gaussian(0, L=20)
    for n, sat in ((60, "largest_margin"), (8, "largest_margin"), (8, "typical")):
        rbal.SphericalPerceptron(kappa=0.2, sat=sat, random_state=0).fit(*classes.sample(n, n, 0))


def machine():
    """Restricted Boltzmann machines of each kind of units, trained, sampled and normalised."""
    X = np.random.default_rng(0).integers(0, 2, size=(20, 6))
    for hidden in ("bernoulli", "gaussian"):
        for states in (2, 3):
            rbm = rbal.RBM(4, n_states=states, hidden=hidden, n_epochs=1, n_chains=8, progress=False, random_state=0)
            rbm.fit(X).sample(4, steps=2, random_state=0)


def advice():
    """A table with numbers and levels, as ``rbal advise`` takes it."""
    X, y = synthetic.random_gaussian(0, L=15).sample(40, 120, 0)
    rbal.advise(X, y, draws=2)


def explorations():
    """Every exploration that :mod:`rbal.widgets` has."""
    for name in widgets.__all__:
        getattr(widgets, name)()


STEPS = theory, perceptron, machine, advice, explorations


def main():
    """All of it, and how long each part took."""
    for step in STEPS:
        began = time.perf_counter()
        step()
        print(f"{step.__name__}: {time.perf_counter() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
