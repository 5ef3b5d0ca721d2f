"""The lessons: their pages run as they are, their solutions are right, and wrong answers get a hint and no solution."""

import re
from pathlib import Path

import jupytext
import matplotlib
import numpy as np
import pytest

from rbal_book import lessons
from rbal_book.lessons._exercises import EXERCISES

LESSONS = sorted(Path(__file__).resolve().parents[1].joinpath("notebooks", "lessons").glob("*.md"))
# What stands in the place of `answer = ...`, in the names of the lesson.
SOLUTIONS = {
    "metrics-constant": "answer = 1900 / 2000",
    "metrics-accuracy": "answer = (found + spared) / 2000",
    "metrics-balanced": "answer = (found / 100 + spared / 1900) / 2",
    "metrics-precision": "answer = found / (found + alarmed)",
    "metrics-rarer": "answer = 0.01 * 0.18 / (0.01 * 0.18 + 0.99 * 45 / 1900)",
    "metrics-blind": 'answer = {"TPR", "TNR", "BA", "AUC"}',
    "metrics-pairs": "answer = np.mean(scores[labels > 0][:, None] > scores[labels < 0])",
    "metrics-cut": """
above, below = scores[labels > 0], scores[labels < 0]
answer = max(np.mean(above > cut) + np.mean(below <= cut) for cut in scores) / 2
""",
    "metrics-separation": "answer = ndtri(found / 100) + ndtri(spared / 1900)",
    "metrics-moved": "answer = ndtr((ndtri(found / 100) + ndtri(spared / 1900)) / 2)",
    "remedies-as-is": "answer = rbal.solve(moments, alpha_pos, alpha_neg, kappa).metrics.ba()",
    "remedies-margin": "answer = rbal.solve(moments, alpha_pos, alpha_neg, 4.0).metrics.ba()",
    "remedies-under": "answer = rbal.solve(moments, alpha_pos, alpha_pos, kappa).metrics.ba()",
    "remedies-over": "answer = rbal.solve(moments, alpha_pos, alpha_neg, kappa, weight_pos=10.0).metrics.ba()",
    "remedies-mixing": "answer = strategies.best_mixing(moments, 0.2, 4.0, kappa).mixing",
    "remedies-threshold": "answer = rbal.solve(moments, alpha_pos, alpha_neg, kappa).metrics.best_ba()",
    "remedies-ranking": 'answer = ["as it is", "undersampling", "oversampling", "moved threshold"]',
    "remedies-trained": """
def trained():
    machine = rbal.SphericalPerceptron(kappa=kappa).fit(*data.sample(50, 500, rng))
    return rbal.Metrics(*machine.order_parameters(moments)).ba()

answer = np.mean([trained() for _ in range(10)])
""",
    "data-share": "answer = y.mean()",
    "data-alpha": "answer = y.sum() / X.shape[1]",
    "data-remedy": "answer = advice.best",
    "data-predicted": 'answer = advice.table.loc[advice.best, "predicted"]',
    "data-plain": """
plain = make_pipeline(StandardScaler(), SVC(kernel="linear", C=1.0)).fit(X, y)
answer = balanced_accuracy_score(y_locked, plain.predict(X_locked))
""",
    "data-found": """
model = advice.pipeline(random_state=0).fit(X, y)
answer = measured = balanced_accuracy_score(y_locked, model.predict(X_locked))
""",
    "data-inside": 'answer = advice.table.loc[advice.best, "low"] <= measured <= advice.table.loc[advice.best, "high"]',
}
WRONG = {float: 0.987, bool: None, set: {"ACC"}, list: ["as it is"], tuple: ("nothing", "trained")}


def run(lesson, monkeypatch, solved):
    """Run the cells of a lesson, as they are or with the solutions; what the checks returned."""
    matplotlib.use("Agg")
    returned, check = {}, lessons.check

    def recorded(name, answer):
        returned[name] = check(name, answer)

    monkeypatch.setattr(lessons, "check", recorded)
    names = {}
    for cell in jupytext.read(lesson).cells:
        if cell.cell_type != "code":
            continue
        asked = re.search(r'lessons\.check\("([^"]+)"', cell.source)
        assert bool(asked) == ("answer = ..." in cell.source)
        source = cell.source.replace("answer = ...", SOLUTIONS[asked[1]]) if asked and solved else cell.source
        exec(compile(source, f"{lesson.stem}: {asked[1] if asked else source[:30]}", "exec"), names)
    matplotlib.pyplot.close("all")
    return returned


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_solutions_are_right(lesson, monkeypatch, capsys):
    found = run(lesson, monkeypatch, solved=True)
    assert len(found) >= 7
    assert all(right is True for right in found.values()), [name for name, right in found.items() if not right]
    assert "Not yet" not in capsys.readouterr().out


def test_every_exercise_stands_in_one_lesson():
    texts = [re.findall(r'lessons\.check\("([^"]+)"', lesson.read_text(encoding="utf-8")) for lesson in LESSONS]
    asked = [name for text in texts for name in text]
    assert sorted(asked) == sorted(EXERCISES) == sorted(SOLUTIONS)


def test_no_answer_is_no_mistake(capsys):
    assert {lessons.check(name, ...) for name in EXERCISES} == {None}
    assert "No answer yet" in capsys.readouterr().out


CHEAP = [name for name in EXERCISES if name.startswith(("metrics", "remedies"))]


@pytest.mark.parametrize("name", CHEAP)
def test_a_wrong_answer_gets_a_hint_without_the_solution(name, capsys):
    exercise = EXERCISES[name]
    expected = exercise.expected()
    assert lessons.check(name, WRONG[type(expected)]) is False
    said = capsys.readouterr().out
    assert said == f"Not yet. {exercise.hint}\n"
    if isinstance(expected, float):
        numbers = [float(n) for n in re.findall(r"\d+\.\d+", exercise.hint)]
        assert not [n for n in numbers if abs(n - expected) <= exercise.tolerance]
        assert lessons.check(name, expected + 0.9 * exercise.tolerance) is True
        assert lessons.check(name, expected - 1.1 * exercise.tolerance) is False
        assert lessons.check(name, "much") is False
        assert "one number" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in CHEAP if EXERCISES[name].slips])
def test_a_slip_is_told(name, capsys):
    for text, value in EXERCISES[name].slips.items():
        assert lessons.check(name, value()) is False
        assert capsys.readouterr().out == f"Not yet. {text}\n"


def test_kinds_of_answers(capsys):
    assert lessons.check("metrics-blind", ["BA", "AUC", "TNR", "TPR"]) is True
    assert lessons.check("metrics-constant", np.float32(0.95)) is True
    assert lessons.check("metrics-constant", True) is False
    assert lessons.check("remedies-ranking", ("as it is", "undersampling", "oversampling", "moved threshold")) is True
    assert lessons.check("metrics-blind", "BA") is False
    assert "several names" in capsys.readouterr().out


def test_an_unknown_exercise():
    with pytest.raises(ValueError, match=r"^name must be one of metrics-constant, .*, got 'none'$"):
        lessons.check("none", 1.0)
