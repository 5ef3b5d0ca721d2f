"""Everything public is fuzzed, or stands here with the reason why not."""

import importlib
import inspect
import warnings
from collections import Counter

import nasty
import pytest
import test_fuzz_advice
import test_fuzz_command
import test_fuzz_learning
import test_fuzz_metrics
import test_fuzz_strategies
import test_fuzz_theory
from nasty import Case, judge

import rbal

AREAS = (
    test_fuzz_theory,
    test_fuzz_metrics,
    test_fuzz_strategies,
    test_fuzz_learning,
    test_fuzz_advice,
    test_fuzz_command,
)
ALL = [case for area in AREAS for case in area.CASES]
ROOMS = (
    "advice", "calibration", "datasets.synthetic", "datasets.images", "datasets.lattice", "experiments", "kernels", "learners", "lessons", "limits",
    "losses", "margins", "metrics", "moments", "phases", "plotting", "rbm", "saddle", "samplers", "strategies", "studies", "studies.tables",
    "widgets",
)  # fmt: skip
OF_THE_BOOK = ("datasets.images", "datasets.lattice", "lessons", "plotting", "studies", "studies.tables")

DOWNLOAD, KERNEL, RECORD = (
    "reads what is downloaded",
    "needs a Jupyter kernel",
    "a record of results, which the library makes",
)
STUDY, COMPILED = "a step of a study, which takes its own tables", "a compiled function: its callers check"
LEFT_OUT = {
    **dict.fromkeys(("datasets.images.load_fashion_mnist", "datasets.images.load_cifar10", "datasets.images.load_celeba"), DOWNLOAD),
    **dict.fromkeys(("datasets.images.Examples", "datasets.images.Images", "losses.Law", "moments.Spectrum",
                     "limits.LargeMargin", "metrics.Reliability", "metrics.Threshold", "metrics.UncertainCost", "losses.Constraint", "losses.Loss",
                     "datasets.lattice.DimerSample", "datasets.lattice.Structures", "datasets.synthetic.Classes", "datasets.synthetic.PottsFit",
                     "moments.Moments", "moments.Mixture"), RECORD),
    **{f"widgets.{name}": KERNEL for name in ("margins", "metrics", "mixing", "own_data", "phases", "simulate", "tradeoff", "widths")},
    **dict.fromkeys(("studies.approach", "studies.at_best", "studies.paired", "studies.sampling", "studies.tidy"), STUDY),
    **{f"studies.tables.{name}": STUDY for name in (
        "cells", "centre", "covered", "foreseen", "holds", "learner", "listed", "load", "measured", "model_error", "regrets", "remedies", "run",
        "source_of", "tuned", "unseen", "versus", "weights", "widened")},
    **dict.fromkeys(("losses.hinge", "losses.logistic"), COMPILED),
    "datasets.images.DataError": "an exception",
    **dict.fromkeys(("lessons.classes", "lessons.scored", "lessons.tumours", "losses.trained", "plotting.use_style",
                     "datasets.images.cache_dir", "datasets.lattice.miyazawa_jernigan"), "takes nothing"),
}  # fmt: skip


def public():
    """Names and objects of every public callable of the rooms."""
    for room in ROOMS:
        module = importlib.import_module(f"rbal_book.{room}" if room in OF_THE_BOOK else f"rbal.{room}")
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__ and name[0] != "_"
        ]
        for name in names:
            if callable(value := getattr(module, name)):
                yield f"{room}.{name}", value


def home(name):
    """Name of a public callable in its room: the root only passes on."""
    head, _, tail = name.partition(".")
    return f"{rbal._HOME[tail.split('.')[0]]}.{tail}" if head == "rbal" and tail.split(".")[0] in rbal._HOME else name


def reached():
    """Public callables, by their names, that a case calls or says that it covers."""
    for case in ALL:
        yield from case.covers
        yield home(case.target)
        for room in ("datasets.", "studies."):
            yield room + case.target


def test_everything_public_is_fuzzed_or_left_out_for_a_reason():
    found = {name for name, _ in public()}
    missing = found - set(reached()) - set(LEFT_OUT)
    assert not missing, f"add a Case to tests/fuzz, or a reason to LEFT_OUT: {sorted(missing)}"
    assert set(LEFT_OUT) <= found, f"no longer public: {sorted(set(LEFT_OUT) - found)}"


@pytest.mark.parametrize(
    "owner", [rbal.Moments, rbal.Mixture, rbal.Metrics, rbal.metrics.MixtureMetrics, rbal.metrics.ManyMetrics]
)
def test_every_method_is_fuzzed(owner):
    methods = {name for name, value in inspect.getmembers(owner, callable) if name[0] != "_"}
    assert methods <= {case.target.rpartition(".")[2] for case in ALL}


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.target)
def test_a_case_knows_every_argument(case):
    function = case.function()
    if function.__module__ is None or not function.__module__.startswith("rbal"):
        return
    named = {
        n for n, p in inspect.signature(function).parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    }
    same = [other for other in ALL if other.target == case.target]
    assert named <= set().union(*(other.arguments for other in same))


# ---- the judge itself


class Said:
    """A call that does what it is told to do."""

    def __init__(self, action, check=None):
        self.case, self.action, self.values = Case("rbal.solve", {"alpha_pos": ("1.0",)}, check), action, {}

    def __call__(self):
        return self.action()


def kind_of(action, check=None):
    found = judge(Said(action, check))
    return found if isinstance(found, str) else found.kind


def test_what_the_judge_says():
    def hang():
        while True:
            pass

    def warn():
        warnings.warn("a surprise", RuntimeWarning, stacklevel=1)

    def wrong(answer, call):
        raise AssertionError("not so")

    assert kind_of(lambda: 1.0) == "answer"
    assert kind_of(lambda: float("nan")) == "wrong AssertionError"
    assert kind_of(lambda: 1.0, wrong) == "wrong AssertionError"
    assert kind_of(lambda: rbal.solve(rbal.Moments.ising(L=5), -1.0, 1.0)) == "error"
    assert kind_of(lambda: [][0]) == "IndexError"
    assert kind_of(lambda: int("alpha_pos")) == "ValueError"  # the name is there by chance: nobody raised it
    assert kind_of(warn) == "RuntimeWarning"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nasty, "CPU_SECONDS", 0.2)
        assert kind_of(hang) == "hang"


def test_areas_have_cases():
    assert Counter(area.AREA for area in AREAS).most_common(1)[0][1] == 1
    assert len(ALL) > 150
