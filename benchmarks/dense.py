"""The published way to the saddle point, written plainly: our baseline.

A fixed number of damped steps; in each the dense matrix A = k̂ + x̂C is inverted, the traces and quadratic forms of the
paper are taken with it, the bias is found by a scalar root search and the hats by the paper's gradients of G±. Nothing
tests for convergence.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfc

STEPS = 150
DAMPING = 0.5


def gradients(K, q, x):
    """(∂_q G, ∂_x G, ∂_r G) of eq. (gradGpmUNSAT)."""
    root = np.sqrt(2.0 * q)
    low, high = erfc((x - K) / root), erfc(-K / root)
    e_low, e_high = np.exp(-((K - x) ** 2) / (2.0 * q)), np.exp(-(K**2) / (2.0 * q))
    width = np.sqrt(q / (2.0 * np.pi))
    G = (
        -width * ((x - K) / x * e_low + K / x * e_high)
        + ((x - K) ** 2 + q) / x * low / 2.0
        - (K**2 + q) / x * high / 2.0
    )
    d_q = -(high - low) / (2.0 * x)
    d_x = -G / x + (x - K) / x * low - 2.0 / x * width * e_low
    d_r = K / (2.0 * x) * high + (x - K) / (2.0 * x) * low + width / x * (e_high - e_low)
    return d_q, d_x, d_r


def solve(C, delta, alpha_pos, alpha_neg, kappa, *, steps=STEPS):
    """(q, r, b) of the spherical perceptron for real features, after a fixed number of steps."""
    L = len(C)
    identity = np.eye(L)
    q, x, r = np.trace(C) / L, 1.0, 0.5 * np.sqrt(delta @ delta / L)
    k_hat, b = 1.0, 0.0

    def bias_gap(b):
        up, down = gradients(kappa - r / 2 + b, q, x)[2], gradients(kappa - r / 2 - b, q, x)[2]
        return alpha_pos * up - alpha_neg * down

    for _ in range(steps):
        b = brentq(bias_gap, -kappa - 20.0 * np.sqrt(q), kappa + 20.0 * np.sqrt(q))
        up, down = gradients(kappa - r / 2 + b, q, x), gradients(kappa - r / 2 - b, q, x)
        x_hat, q_hat, r_hat = (
            -(alpha_pos * up[0] + alpha_neg * down[0]),
            -(alpha_pos * up[1] + alpha_neg * down[1]),
            -(alpha_pos * up[2] + alpha_neg * down[2]) / 2.0,
        )
        A_inv = np.linalg.inv(k_hat * identity + x_hat * C)
        A_inv2 = A_inv @ A_inv
        A_inv2_C = A_inv2 @ C
        q_new = (-q_hat * np.trace(A_inv2_C @ C) + r_hat**2 * delta @ A_inv2_C @ delta) / L
        x_new = (k_hat * np.trace(A_inv2_C) + x_hat * np.trace(A_inv2_C @ C)) / L
        r_new = -r_hat * (k_hat * delta @ A_inv2 @ delta + x_hat * delta @ A_inv2_C @ delta) / L
        q, x, r = (DAMPING * old + (1.0 - DAMPING) * new for old, new in ((q, q_new), (x, x_new), (r, r_new)))
        # on the saddle point k̂ = -(q̂x + r̂r + x̂q): it saves a root search with an inversion at each trial
        k_hat = -(q_hat * x + r_hat * r + x_hat * q)
    return q, r, b
