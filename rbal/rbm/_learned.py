"""Parameters, history and file of a trained machine."""

import json
import os
import zipfile
import zlib

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from .._support.files import atomic, file_path
from ._machine import HIDDEN, Machine, visible_layer
from ._training import Training

FORMAT = "rbal.RBM 1"
ARRAYS = ("W", "b", "c", "base", "mean", "hidden_mean", "visible_chains", "hidden_chains")


class Learned:
    """Estimators that hold a training: its results, and its file."""

    def _publish(self, training):
        self._log_partition = None
        self._training = training

    def _machine(self):
        check_is_fitted(self)
        return self._training.machine

    def __sklearn_is_fitted__(self):
        return hasattr(self, "_training")

    def _parameters(self, name):
        # a property that is missing before fit, as attributes of scikit-learn are
        if not hasattr(self, "_training"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r} before it is fitted")
        return self._training

    @property
    def weights_(self):
        """Couplings w between the layers, (L, M), or (L, Q, M) for more than two states."""
        machine = self._parameters("weights_").machine
        return machine.W if self.n_states == 2 else machine.visible.by_state(machine.W)

    @property
    def fields_(self):
        """Fields h on the visible units, (L,) or (L, Q)."""
        machine = self._parameters("fields_").machine
        return machine.b if self.n_states == 2 else machine.visible.by_state(machine.b)

    @property
    def biases_(self):
        """Fields c on the hidden units, (M,)."""
        return self._parameters("biases_").machine.c

    @property
    def history_(self):
        """Measures of the training, each with an entry for every epoch."""
        history = self._parameters("history_").history
        names = ("pseudo_likelihood", "reconstruction_error", "log_likelihood")
        return {name: np.array([epoch.get(name, np.nan) for epoch in history]) for name in names}

    @property
    def n_epochs_(self):
        """Number of epochs so far."""
        return len(self._parameters("n_epochs_").history)

    @property
    def _n_features_out(self):
        return len(self.biases_)

    def save(self, path):
        """Write the machine, and all that training needs to go on, to an npz file.

        Parameters
        ----------
        path : path-like
            The file appears when it is complete; one that was there before is replaced.
        """
        self._machine()
        params = self.get_params()
        if not isinstance(self.random_state, (int, np.integer)):
            params["random_state"] = None  # a generator: its state is part of the training
        write(path, params, self._training, getattr(self, "feature_names_in_", None))

    @classmethod
    def load(cls, path):
        """Read a machine that was saved.

        Parameters
        ----------
        path : path-like
            A file written by ``save``. Nothing in it is executed.

        Returns
        -------
        RBM
        """
        params, training, names = read(path, cls._get_param_names())
        rbm = cls(**params)
        rbm.n_features_in_ = training.machine.visible.n
        if names is not None:
            rbm.feature_names_in_ = names.astype(object)
        rbm._publish(training)
        rbm._warned = False
        return rbm


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
