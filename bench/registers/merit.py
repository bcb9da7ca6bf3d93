"""The two figures of merit, and nonnegative least squares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Return Spearman's rank correlation, ties ranked by their mean."""
    return float(np.corrcoef(_ranks(left), _ranks(right))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, float)
    return np.array([(array < value).sum() + ((array == value).sum() - 1) / 2 for value in array])


def relative_errors(estimates: Sequence[float], truth: Sequence[float]) -> np.ndarray:
    """Return |estimate - truth| / truth."""
    return np.abs(np.asarray(estimates, float) - np.asarray(truth, float)) / np.asarray(truth, float)


def nonnegative_least_squares(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Minimize |matrix x - target| with x >= 0, by coordinate descent (few columns, so it converges fast)."""
    gram, moment = matrix.T @ matrix, matrix.T @ target
    x = np.zeros(matrix.shape[1])
    for _ in range(3000):
        for j in range(len(x)):
            if gram[j, j] > 0:
                x[j] = max(0.0, x[j] + (moment[j] - gram[j] @ x) / gram[j, j])
    return x
