"""Learning from imbalanced classes: the exact high-dimensional theory, its simulators and its advice.

Names are loaded when they are first used, so that ``import rbal`` costs nothing and compiles nothing.
"""

from importlib import import_module

__version__ = "0.2.0"

_HOME = {
    "Moments": "moments",
    "Mixture": "moments",
    "solve": "saddle",
    "solve_multinomial": "saddle",
    "solve_ovr": "saddle",
    "sweep": "saddle",
    "overlap": "saddle",
    "Solution": "saddle",
    "ConvergenceWarning": "saddle",
    "critical_margin": "phases",
    "critical_alpha": "phases",
    "Metrics": "metrics",
    "Calibrated": "calibration",
    "calibrated": "calibration",
    "train_density": "margins",
    "test_density": "margins",
    "large_margin": "limits",
    "large_margin_error": "limits",
    "gardner_capacity": "limits",
    "SphericalPerceptron": "learners",
    "LinearSVM": "learners",
    "LikelihoodInformedSampler": "samplers",
    "RBMSMOTE": "samplers",
    "RandomMixSampler": "samplers",
    "advise": "advice",
    "Advice": "advice",
    "RBM": "rbm",
}
_MODULES = (
    "advice",
    "calibration",
    "datasets",
    "experiments",
    "kernels",
    "learners",
    "limits",
    "losses",
    "margins",
    "metrics",
    "moments",
    "phases",
    "rbm",
    "saddle",
    "samplers",
    "strategies",
    "warmup",
    "widgets",
)

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name):
    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module 'rbal' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOME, *_MODULES})
