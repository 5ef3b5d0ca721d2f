"""Other ways to train a restricted Boltzmann machine by persistent chains: scikit-learn's, and a plain one in torch."""

import importlib.util

import numpy as np
from sklearn.neural_network import BernoulliRBM

from rbal.rbm._machine import Bernoulli, Machine
from rbal.rbm._partition import annealed

HAS_TORCH = importlib.util.find_spec("torch") is not None


def scikit_learn(X, n_epochs, rate, M=100, batch=100):
    """scikit-learn's machine, in single precision, as it is quicker there."""
    rbm = BernoulliRBM(M, learning_rate=rate, batch_size=batch, n_iter=n_epochs, random_state=0)
    return rbm.fit(X.astype(np.float32, copy=False))


def likelihood(X, rbm, base):
    """Mean log-likelihood of X, and its error, for a machine of scikit-learn: by our annealing, as for our own."""
    L, M = X.shape[1], len(rbm.components_)
    arrays = rbm.components_.T, rbm.intercept_visible_, rbm.intercept_hidden_
    machine = Machine(Bernoulli(L), Bernoulli(M), *map(np.ascontiguousarray, arrays)).astype(np.float64)
    log_z = annealed(machine, base, X[:200], 200, 500, 8000, np.random.default_rng(0))
    return -machine.free_energy(X.astype(float)).mean() - log_z.value, log_z.error


class Torch:
    """The textbook version in torch: one step of the persistent chains a batch, no penalty, all cores."""

    def __init__(self, X, M=100, batch=100, rate=0.05):
        import torch

        self.torch, self.batch, self.rate = torch, batch, rate
        torch.manual_seed(0)
        self.X = torch.from_numpy(X.astype(np.float32))
        L = X.shape[1]
        self.W, self.b, self.c = 0.1 / np.sqrt(L) * torch.randn(L, M), torch.zeros(L), torch.zeros(M)
        self.h = torch.zeros(batch, M)

    def epoch(self):
        """One pass over the data."""
        torch, W, b, c = self.torch, self.W, self.b, self.c
        with torch.no_grad():
            order = torch.randperm(len(self.X))
            for rows in order.split(self.batch):
                data = self.X[rows]
                h_data = torch.sigmoid(torch.addmm(c, data, W))
                v = torch.bernoulli(torch.sigmoid(torch.addmm(b, self.h, W.T)))
                h = torch.sigmoid(torch.addmm(c, v, W))
                self.h = torch.bernoulli(h)
                W += self.rate * (data.T @ h_data / len(data) - v.T @ h / len(v))
                b += self.rate * (data.mean(0) - v.mean(0))
                c += self.rate * (h_data.mean(0) - h.mean(0))
