"""The two figures of merit: rank correlation and relative errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spearman(left: Sequence[float], right: Sequence[float]) -> float:
    """Return Spearman's rank correlation, ties ranked by their mean."""
    return float(np.corrcoef(_ranks(left), _ranks(right))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, float)
    ordered = np.sort(array)
    return (np.searchsorted(ordered, array, "left") + np.searchsorted(ordered, array, "right") - 1) / 2


def relative_errors(estimates: Sequence[float], truth: Sequence[float]) -> np.ndarray:
    """Return |estimate - truth| / truth."""
    return np.abs(np.asarray(estimates, float) - np.asarray(truth, float)) / np.asarray(truth, float)
