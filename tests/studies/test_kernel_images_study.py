"""The study of kernel machines on images: what its stored table claims, and a run of small images."""

import numpy as np
import pytest

from rbal_book import studies
from rbal_book.studies import _kernel_images as study


@pytest.fixture
def table():
    return studies.stored("kernel_images")


def test_every_cell_is_there(table):
    assert list(table.columns) == study.COLUMNS
    assert len(table) == len(study.PAIRS) * len(study.KERNELS) * 3 * len(study.C)
    rbf, ntk = table[table.kernel == "rbf"], table[table.kernel == "ntk"]
    assert rbf["at"].max() / rbf["at"].min() == pytest.approx(100.0)
    assert set(ntk["at"]) == {1, 3, 5}
    assert table["C"].max() / table["C"].min() == pytest.approx(1e5)
    assert table["trained"].between(0.4, 1.0).all()
    assert (table["error"] >= 0.0).all()


def test_summary_is_a_mean_of_errors(table):
    part = table[(table.kernel == "ntk") & (table.remedy == "as is")]
    found = study.summary(table).loc["ntk", "as is"]
    off = part["predicted"] - part["trained"]
    assert found["size"] == pytest.approx(np.abs(off).mean())
    assert found["bias"] == pytest.approx(off.mean())
    assert found["settings"] == len(part)


class Small:
    """Two classes of six pixels, in place of images."""

    def __init__(self):
        self.X_test, self.y_test = self.sample(100, 100, np.random.default_rng(5))

    def sample(self, n_pos, n_neg, rng):
        y = np.repeat([1, -1], [n_pos, n_neg])
        return rng.normal(size=(y.size, 6)) + 0.8 * (y > 0)[:, None], y


SMALL = Small()


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "load", lambda pair: SMALL)
    monkeypatch.setattr(study, "SIZES", {"1:1": (40, 40), "1:9": (15, 45)})
    monkeypatch.setattr(study, "KERNELS", [("rbf", 1.0), ("ntk", 1.0)])
    monkeypatch.setattr(study, "C", np.array([0.1, 1.0]))
    monkeypatch.setattr(study, "SETS", 2)
    study.run(["4 or 9"], tmp_path / "store", tmp_path / "out")
    found = studies.stored("kernel_images", tmp_path / "out")
    assert list(found.columns) == study.COLUMNS
    assert len(found) == 2 * 3 * 2
    close = found[(found.sizes == "1:1") & (found.C == 1.0)]
    assert (close.predicted - close.trained).abs().max() < 0.15
    monkeypatch.setattr(study, "SVC", None)  # nothing is trained again
    study.run(["4 or 9"], tmp_path / "store", tmp_path / "out")
    assert "class weights" in capsys.readouterr().out


def test_training_sets_are_those_of_every_kernel(monkeypatch):
    monkeypatch.setattr(study, "load", lambda pair: SMALL)
    one, two = (list(study.training_sets("3 or 5", "1:9")) for _ in range(2))
    assert len(one) == study.SETS
    for (X, y), (same, labels) in zip(one, two, strict=True):
        np.testing.assert_array_equal(X, same)
        np.testing.assert_array_equal(y, labels)
    assert not np.array_equal(one[0][0], one[1][0])
