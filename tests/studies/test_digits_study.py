"""The study of ten digits: what its stored arrays claim, and a run on few pixels."""

import numpy as np
import pytest

from rbal_book import studies
from rbal_book.studies import _digits


@pytest.fixture
def arrays():
    return studies.stored("digits")


def macro(confusions):
    """Macro recall (settings, weights, covariances or training sets)."""
    return np.diagonal(confusions, axis1=-2, axis2=-1).mean(axis=-1)


def test_all_settings_are_there(arrays):
    np.testing.assert_array_equal(arrays["sizes"], list(_digits.SETTINGS.values()))
    assert arrays["sizes"][1].max() == 100 * arrays["sizes"][1].min()
    for name in ("plain", "moved", "gaussian"):
        found = arrays[f"trained_{name}"]
        assert found.shape == (3, 2, _digits.TRAININGS, 10, 10)
        np.testing.assert_allclose(found.sum(axis=-1), 1.0, atol=1e-5)


@pytest.mark.parametrize("name", ["plain", "moved"])
def test_macro_recall_is_predicted_within_two_hundredths(arrays, name):
    foreseen, real = macro(arrays[f"predicted_{name}"])[..., 0], macro(arrays[f"trained_{name}"]).mean(axis=-1)
    assert np.abs(foreseen - real).max() < 0.02


def test_one_covariance_is_worse(arrays):
    real = macro(arrays["trained_plain"]).mean(axis=-1)
    own, shared = np.abs(macro(arrays["predicted_plain"]) - real[..., None]).mean(axis=(0, 1))
    assert own < 0.5 * shared


def test_a_run_on_few_pixels(monkeypatch, tmp_path):
    """Gaussian rows in place of digits: all is stored, read again, and close to the theory."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 30))
    monkeypatch.setattr(_digits, "L", 30)
    monkeypatch.setattr(_digits, "SETTINGS", {"1:1": np.full(10, 40)})
    rows = [centre + rng.normal(size=(400, 30)) for centre in centres]
    monkeypatch.setattr(_digits, "load", lambda: (rows, centres[:, None] + rng.normal(size=(10, 500, 30))))
    arrays = _digits.collect(tmp_path, ("1:1",), 2)
    again = _digits.collect(tmp_path, ("1:1",), 2)
    for name, values in arrays.items():
        np.testing.assert_array_equal(again[name], values)
    assert len(list(tmp_path.iterdir())) == 8
    # 800 training rows in all, 10,000 test rows: errors of macro recall are below 0.01
    foreseen = macro(arrays["predicted_plain"])[..., 1]
    assert np.abs(macro(arrays["trained_plain"]).mean(axis=-1) - foreseen).max() < 0.03
