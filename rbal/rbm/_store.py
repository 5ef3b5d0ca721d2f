"""A machine and its training in an npz file, without pickle."""

import json
import os
import zipfile
import zlib

import numpy as np

from .. import __version__
from .._support.files import atomic, file_path
from ._layers import HIDDEN, visible_layer
from ._machine import Machine
from ._training import Training

FORMAT = "rbal.RBM 1"
ARRAYS = ("W", "b", "c", "base", "mean", "hidden_mean", "visible_chains", "hidden_chains")


def write(path, params, training, names):
    """Write parameters, training and the names of the features; the file appears when it is complete."""
    t, machine = training, training.machine
    header = {
        "format": FORMAT,
        "rbal": __version__,
        "params": params,
        "L": machine.visible.n,
        "history": t.history,
        "rng": t.rng.bit_generator.state,
    }
    arrays = dict(zip(ARRAYS, (*machine[2:], t.base, t.mean, t.hidden_mean, None, t.hidden_chains), strict=True))
    arrays["visible_chains"] = machine.visible.decode(t.visible_chains)
    if names is not None:
        arrays["names"] = np.asarray(names, dtype=np.str_)
    with atomic(file_path("path", path)) as file:
        np.savez(file, header=np.asarray(json.dumps(header, default=_plain)), **arrays)


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be saved")


def read(path, known):
    """Read parameters, whose names must be known, training and the names of the features."""
    path = file_path("path", path)
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            if header["format"] != FORMAT:
                raise ValueError(f"its format is {header['format']!r}, not {FORMAT!r}")
            if unknown := set(header["params"]) - set(known):
                raise ValueError(f"it has unknown parameters {sorted(unknown)}")
            return header["params"], _training(header, file), file.get("names")
    except (KeyError, TypeError, ValueError, EOFError, IndexError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{os.fspath(path)!r} holds no machine saved by rbal, or is damaged: {error}") from error


def _training(header, file):
    params = header["params"]
    visible = visible_layer(header["L"], params["n_states"])
    hidden = HIDDEN[params["hidden"]](params["n_hidden"])
    arrays = {name: file[name] for name in ARRAYS}
    D, M, T = visible.width, hidden.width, len(arrays["hidden_chains"])
    shapes = ((D, M), (D,), (M,), (D,), (D,), (M,), (T, visible.n), (T, M))
    for (name, array), shape in zip(arrays.items(), shapes, strict=True):
        if array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape}, not {shape}")
    rng = np.random.default_rng()
    rng.bit_generator.state = header["rng"]
    W, b, c, base, mean, hidden_mean, chains, z = arrays.values()
    chains = visible.encode(chains, np.float32)
    machine = Machine(visible, hidden, W, b, c)
    return Training(machine, base, mean, hidden_mean, chains, z, rng, tuple(header["history"]))
