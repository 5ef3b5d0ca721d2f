"""The plan of the house: which room may import which, and the names that are reached through each door."""

import ast
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "rbal"

# From left to right, as data flow: a room imports only what stands in an earlier row.
ROWS = [
    {"_support"},
    {"losses", "moments", "metrics", "plotting", "rbm"},
    {"learners", "kernels"},
    {"saddle", "limits", "datasets", "samplers", "experiments"},
    {"calibration", "phases", "margins", "strategies", "deep"},
    {"advice"},
    {"lessons", "studies", "widgets"},
    {"warmup"},
    {"cli"},
]

# Names that scripts of the first edition use. They keep working, wherever the code behind them has moved to.
PUBLIC = {
    "advice": "LOSSES Advice ManyAdvice advise advise_file read_table",
    "calibration": "Calibrated calibrated",
    "datasets": "images lattice synthetic",
    "experiments": "PROVENANCE SharedTest TrialError generator pivot run shared_test summary train",
    "kernels": "KERNELS BoundKernel Kernel Parameter arc_cosine bind moments ntk register",
    "learners": "LinearSVM OrderParameters SphericalPerceptron order_parameters",
    "lessons": "check classes scored tumours",
    "limits": "gardner_capacity large_margin large_margin_error",
    "losses": "EQUALITY HINGE INEQUALITY LOGISTIC LOSSES SQUARE SQUARED_HINGE Constraint Loss bootstrapped "
    "expectations homogeneity of_difference record_of register tempered",
    "margins": "test_density train_density",
    "metrics": "METRICS Link ManyMetrics Metric Metrics MixtureMetrics Reliability Threshold UncertainCost "
    "best_threshold cost evaluate register",
    "moments": "KernelMoments Mixture Moments Spectrum",
    "phases": "critical_alpha critical_margin",
    "plotting": "BLUE GREEN VERMILLION dots margin_color use_style",
    "rbm": "LogPartition RBM",
    "saddle": "MODELS PHASES MixtureSolution MultinomialSolution Solution ConvergenceWarning Overlap OvrSolution "
    "overlap residuals solve solve_multinomial solve_ovr sweep",
    "samplers": "LikelihoodInformedSampler RBMSMOTE RandomMixSampler",
    "strategies": "ADJUSTMENTS Adjustment Bagging BestAdjustment BestClassifier Change REMEDIES BestMixing Interval "
    "Remedy ManyDesign adjust bagging balanced best_adjustment best_classifier best_mixing compare compare_many "
    "design_many imbalanced interval logit_offsets mix own_widths register register_adjustment restore window",
    "studies": "MINORITIES MIXINGS QUICK RESULTS STRATEGIES approach at_best clustered holm paired sampling stored "
    "tidy",
    "studies.tables": "centre covered holds listed load measured model_error regrets remedies versus",
    "warmup": "CacheError STEPS Warmed run",
    "widgets": "margins metrics mixing own_data phases simulate tradeoff widths",
}


def rooms():
    """Room of each source file, and the rooms it imports from."""
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("rbal", *path.relative_to(PACKAGE).with_suffix("").parts)
        if parts[1].startswith("__"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = parts[: len(parts) - node.level] + tuple((node.module or "").split(".") if node.module else ())
                for name in node.names:
                    yield path, parts[1], (*base, name.name)[1]


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
