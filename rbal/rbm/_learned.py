"""Parameters, history and file of a trained machine."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import _store


class Learned:
    """Estimators that hold a training: what it has come to, and how it is written to a file."""

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
            params["random_state"] = None  # a generator: what has become of it is part of the training
        _store.write(path, params, self._training, getattr(self, "feature_names_in_", None))

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
        params, training, names = _store.read(path, cls._get_param_names())
        rbm = cls(**params)
        rbm.n_features_in_ = training.machine.visible.n
        if names is not None:
            rbm.feature_names_in_ = names.astype(object)
        rbm._publish(training)
        rbm._warned = False
        return rbm
