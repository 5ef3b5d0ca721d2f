"""The plan of the house: which room may import which, and the names that are reached through each door."""

import ast
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "rbal"

# From left to right, as data flow: a room imports only what stands in an earlier row.
ROWS = [
    {"_support"},
    {"losses", "moments", "metrics", "rbm"},
    {"learners", "kernels"},
    {"saddle", "limits", "datasets", "samplers", "experiments"},
    {"calibration", "phases", "margins", "strategies"},
    {"advice"},
    {"widgets"},
    {"warmup"},
    {"cli"},
]

# Names that scripts of the first edition use. They keep working, wherever the code behind them has moved to.
PUBLIC = {
    "advice": "LOSSES Advice ManyAdvice advise advise_file read_table",
    "calibration": "Calibrated calibrated",
    "datasets": "synthetic",
    "experiments": "PROVENANCE SharedTest TrialError generator pivot run shared_test summary train",
    "kernels": "KERNELS BoundKernel Kernel Parameter arc_cosine bind moments ntk register",
    "learners": "LinearSVM OrderParameters SphericalPerceptron order_parameters",
    "limits": "gardner_capacity large_margin large_margin_error",
    "losses": "EQUALITY HINGE INEQUALITY LOGISTIC LOSSES SQUARE SQUARED_HINGE Constraint Loss bootstrapped "
    "expectations homogeneity of_difference record_of register tempered",
    "margins": "test_density train_density",
    "metrics": "METRICS Link ManyMetrics Metric Metrics MixtureMetrics Reliability Threshold UncertainCost "
    "best_threshold cost evaluate register",
    "moments": "KernelMoments Mixture Moments Spectrum",
    "phases": "critical_alpha critical_margin",
    "rbm": "LogPartition RBM",
    "saddle": "MODELS PHASES MixtureSolution MultinomialSolution Solution ConvergenceWarning Overlap OvrSolution "
    "overlap residuals solve solve_multinomial solve_ovr sweep",
    "samplers": "LikelihoodInformedSampler RBMSMOTE RandomMixSampler",
    "strategies": "ADJUSTMENTS Adjustment Bagging BestAdjustment BestClassifier Change REMEDIES BestMixing Interval "
    "Remedy ManyDesign adjust bagging balanced best_adjustment best_classifier best_mixing compare compare_many "
    "design_many imbalanced interval logit_offsets mix own_widths register register_adjustment restore window",
    "warmup": "CacheError STEPS Warmed run",
    "widgets": "margins metrics mixing own_data phases simulate tradeoff widths",
}


def imports(package):
    """Source, its room, and each name that it imports from this repository, as a tuple of its parts."""
    for path in sorted(package.rglob("*.py")):
        parts = (package.name, *path.relative_to(package).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom | ast.Import):
                continue
            module = tuple((getattr(node, "module", None) or "").split(".")) if getattr(node, "module", None) else ()
            base = parts[: len(parts) - node.level] if getattr(node, "level", 0) else ()
            for name in node.names:
                whole = (*base, *module, *name.name.split("."))
                if whole[0] in ("rbal", "rbal_book"):
                    yield path, parts[1], whole


def rooms():
    """Room of each source file of the library, and the rooms that it imports from."""
    for path, room, name in imports(PACKAGE):
        if not room.startswith("__") and name[0] == "rbal" and len(name) > 1:
            yield path, room, name[1]


def test_every_room_stands_in_the_plan():
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__", "__main__"} == set().union(*ROWS)


def test_no_room_imports_one_to_its_right():
    row = {room: k for k, names in enumerate(ROWS) for room in names}
    wrong = {
        f"{path.relative_to(PACKAGE)} imports {other}"
        for path, room, other in rooms()
        if other in row and other != room and not row[other] < row[room]
    }
    assert not wrong


def test_the_library_does_not_know_the_book():
    assert not [
        f"{path.relative_to(ROOT)}: {'.'.join(name)}" for path, _, name in imports(PACKAGE) if name[0] != "rbal"
    ]


def test_no_room_imports_what_is_private_in_another():
    """What other rooms may use stands in the room itself or in its ``internal``."""
    wrong = {
        f"{path.relative_to(ROOT)} imports {'.'.join(name)}"
        for package in (PACKAGE, ROOT / "rbal_book")
        for path, room, name in imports(package)
        if name[:2] != (package.name, room) and name[1:2] not in (("_support",), ("__version__",))
        if any(part.startswith("_") for part in name[1:])
    }
    assert not wrong


@pytest.mark.parametrize(("module", "name"), [(m, n) for m, names in PUBLIC.items() for n in names.split()])
def test_public_names_keep_working(module, name):
    assert hasattr(importlib.import_module(f"rbal.{module}"), name)


def test_an_edited_source_makes_the_cache_stale(tmp_path):
    """Outside of make, too: what a kernel calls into may stand in another file. Other files do not matter to it."""
    copy = tmp_path / "rbal"
    shutil.copytree(PACKAGE / "_support", copy / "_support", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PACKAGE / "losses", copy / "losses", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "__init__.py").touch()
    code = (
        "from rbal.losses._hinge import band_moments as f; f(0.1, 0.2); print(sum(f.outer.stats.cache_hits.values()))"
    )
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""}

    def hits(edited=None):
        if edited:
            with (copy / edited).open("a", encoding="utf-8") as file:
                file.write("# edited\n")
        return int(subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=environment, text=True))

    assert [hits(), hits(), hits("_support/gauss.py"), hits(), hits("_support/files.py")] == [0, 1, 0, 1, 1]
