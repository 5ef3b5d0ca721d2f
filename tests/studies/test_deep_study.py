"""The study of the chapter deep on tiny data."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="this study needs PyTorch: pip install rbal[deep]")

from rbal.learners import LinearSVM  # noqa: E402
from rbal_book import deep  # noqa: E402
from rbal_book.datasets import images  # noqa: E402
from rbal_book.deep import _networks, _training  # noqa: E402
from rbal_book.studies import _deep  # noqa: E402

TINY = {"blocks": (1, 2), "width": 4, "n_classes": 5}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def little(side=16):
    """Two classes of coloured noise, with the interface of the image sets."""
    X = np.random.default_rng(0).integers(0, 200, (400, side, side, 3))
    X[:200, :, :, 0] += 55  # redder
    X = X.astype(np.uint8).reshape(400, -1)
    return images.Images(
        name="noise", labels=("red", "grey"), shape=(side, side, 3), train=[X[:140], X[200:340]],
        test=[X[140:200], X[340:]], examples=None, packed=False,
    )  # fmt: skip


def small_study(tmp_path, monkeypatch, **changes):
    for name, value in {"TEST": 20, "TOTALS": (20,), "SHARES": (0.2, 0.5), "KEPT": {"resnet50": 8, "cnn": 4}}.items():
        monkeypatch.setattr(_deep, name, value)
    monkeypatch.setattr(_deep.deep, "SmallCNN", partial(deep.SmallCNN, widths=(4, 8)))
    options = {"negatives": 40, "ratio": 0.25, "epochs": 2, "batch_size": 16, "lr": 1e-3, "seeds": 2, "head_epochs": 3,
               "cnn_images": 40, "cnn_epochs": 2, "trials": 2, "shown": 50, "shown_test": 10}  # fmt: skip

    def build():
        torch.manual_seed(0)
        return _networks.ResNet(**TINY)

    settings = _deep.Settings(**{**options, **changes})
    return _deep.Study(little(), settings, tmp_path / "work", tmp_path / "out", build, [*_deep.REMEDIES, "balanced"])


def test_study_runs_and_does_nothing_twice(tmp_path, monkeypatch, capsys):
    study = small_study(tmp_path, monkeypatch)
    for part in _deep.PARTS.values():
        part(study)
    epochs = pd.read_csv(study.out / "epochs.csv")
    assert set(epochs.strategy) == {*_deep.REMEDIES, "balanced"}
    sizes = epochs.groupby("strategy").epoch.max()
    assert sizes["as is"] == sizes["balanced"] == 2
    assert sizes["undersampling"] == 5  # 20 images a pass instead of 50
    table = pd.read_csv(study.out / "networks.csv")
    assert len(table) == 6 * 2 * 2
    with np.load(study.out / "scores.npz") as stored:
        y = np.repeat([1, -1], 20)
        final = epochs[(epochs.strategy == "balanced") & (epochs.seed == 1)].iloc[-1]
        assert deep.evaluate(stored["balanced/1/scores"], y)["ba"] == pytest.approx(final.test_ba, abs=0.03)
        assert stored["as is/0/components"].shape[0] == 40
    with np.load(study.out / "resnet50-rows.npz") as rows:
        assert rows["pos"].shape == (50, 8)
        assert rows["test_neg"].shape == (10, 8)
        assert np.abs(rows["pos"]).max() <= 127
    with np.load(study.out / "frozen.npz") as heads:
        assert set(heads) == {f"{name}/{seed}/scores" for name in ("as is", "balanced") for seed in (0, 1)}
        assert deep.evaluate(heads["balanced/0/scores"], y)["auc"] > 0.9  # redder images are easily told
    assert len(pd.read_csv(study.out / "remedies.csv")) == 6 * 2 * 2
    assert len(pd.read_csv(study.out / "cnn-heads.csv")) == 2 * 2
    assert json.loads((study.out / "about.json").read_text())["settings"]["negatives"] == 40

    before = {path: path.read_bytes() for path in study.out.glob("*.csv")}
    monkeypatch.setattr(_training, "_epoch", None)  # any further training would fail
    for part in _deep.PARTS.values():
        part(study)
    assert {path: path.read_bytes() for path in study.out.glob("*.csv")} == before
    capsys.readouterr()


def test_study_goes_on_to_more_epochs(tmp_path, monkeypatch, capsys):
    study = small_study(tmp_path, monkeypatch, seeds=1)
    study.strategies = ["as is"]
    _deep.networks(study)
    short = pd.read_csv(study.out / "epochs.csv")
    study = small_study(tmp_path, monkeypatch, seeds=1, epochs=4)
    study.strategies = ["as is"]
    _deep.networks(study)
    long = pd.read_csv(study.out / "epochs.csv")
    assert list(long.epoch) == [1, 2, 3, 4]
    assert long.iloc[:2].equals(short)
    capsys.readouterr()


def test_study_draws_what_it_says(tmp_path, monkeypatch):
    study = small_study(tmp_path, monkeypatch)
    pos, neg, apart = study.draw(0)
    assert len({*pos}) == len({*neg}) == 40
    as_is, over = study.training_set(0, "as is"), study.training_set(0, "oversampling")
    assert (len(as_is[0]), len(as_is[1])) == (10, 40)
    assert np.array_equal(as_is[1], study.training_set(0, "balanced")[1])  # the same negatives
    assert {*as_is[0]} < {*study.training_set(0, "balanced")[0]}
    assert len(over[0]) == len(over[1]) == 40
    assert {*over[0]} == {*as_is[0]}
    under, mixed, weighted = (study.training_set(0, name) for name in ("undersampling", "mixed", "class weights"))
    assert [len(part) for part in (*under[:2], *mixed[:2])] == [10, 10, 25, 25]
    assert weighted[2] * len(weighted[0]) == weighted[3] * len(weighted[1]) == 25
    assert all(np.min(rows) >= 20 for rows in apart)  # none that the networks are tested on
    assert not np.array_equal(pos, study.draw(1)[0])


def test_study_has_the_setting_of_the_paper():
    paper = _deep.Settings(**_deep.PAPER)
    assert (paper.negatives, paper.ratio, paper.epochs, paper.batch_size) == (25_000, 0.1, 100, 128)
    assert (paper.lr, paper.decay) == (1e-5, 1e-5)


def test_paper_has_folders_of_its_own(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(_deep.images, "load_cifar10", lambda n_test: little())
    monkeypatch.setitem(_deep.PARTS, "networks", seen.append)
    for paper in (True, False):
        _deep.run(paper=paper, parts=["networks"], work=tmp_path / "work", out=tmp_path / "out", epochs=3)
    for study, folder, negatives, preprocess in zip(seen, ("paper", ""), (25_000, 2500), (0, 1), strict=True):
        assert (study.work, study.out) == (tmp_path / "work" / folder, tmp_path / "out" / "deep" / folder)
        assert study.settings.epochs == 3  # what is given goes before the paper
        assert (study.settings.negatives, study.settings.preprocess) == (negatives, preprocess)


def test_study_fits_in_the_span_of_the_samples():
    X, y = np.random.default_rng(0).normal(size=(20, 50)), np.repeat([1, -1], [5, 15])
    weight = np.where(y > 0, 3.0, 1.0)
    found = _deep.logistic(X, y, weight)
    expected = LinearSVM(lam=_deep.RIDGE, loss="logistic").fit(X, y, weight)
    np.testing.assert_allclose(found.J_, expected.J_, atol=1e-4 * np.abs(expected.J_).max())
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-4)
