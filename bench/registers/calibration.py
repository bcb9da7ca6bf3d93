"""Fits the coefficients of ``evaluators.registers.model``, and scores them.

The model is a product of powers, so the fit of its logarithm is a ridge regression on standardized terms; exponents
that must not be negative are kept at zero or above by coordinate descent.  Kernels as text and kernels as PTX are
fitted together; one of the former weighs as much as ``_TEXT_WEIGHT`` of the latter, of which there are three times as
many.  The same samples give the same model.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from merit import relative_errors, spearman

from metafork.evaluators.registers.model import ANY_SIGN, NAMES, RegisterModel, Terms

_SWEEPS = 600
_FOLDS = 8
_RIDGE = 20.0
_TEXT_WEIGHT = 2.0


@dataclass(frozen=True)
class Sample:
    """One kernel: what is counted on it, and what ``ptxas`` says."""

    program: str
    name: str
    terms: Terms
    registers: int


def calibrate(samples: Sequence[Sample]) -> RegisterModel:
    """Return the model that fits the samples best."""
    rows = np.array([sample.terms.logarithms() for sample in samples])
    values = np.log(np.array([sample.registers for sample in samples], float))
    weights = np.where(rows[:, NAMES.index("from_text")] > 0, _TEXT_WEIGHT, 1.0)
    centre = np.average(rows, axis=0, weights=weights)
    spread = np.sqrt(np.average((rows - centre) ** 2, axis=0, weights=weights))
    spread[spread == 0] = 1.0
    scaled, mean = (rows - centre) / spread, np.average(values, weights=weights)
    gram = scaled.T @ (scaled * weights[:, None]) + _RIDGE * np.eye(len(NAMES))
    right = scaled.T @ (weights * (values - mean))
    found = np.zeros(len(NAMES))
    for _ in range(_SWEEPS):
        for at, name in enumerate(NAMES):
            best = found[at] + (right[at] - gram[at] @ found) / gram[at, at]
            found[at] = best if name in ANY_SIGN else max(0.0, best)
    exponents = [round(float(a), 4) for a in found / spread]
    return RegisterModel(round(float(mean - np.array(exponents) @ centre), 4), tuple(exponents))


def cross_validated(samples: Sequence[Sample], seed: int) -> list[int]:
    """Return the estimate of each sample by a model that saw none of its program, an eighth of the programs in turn."""
    programs = sorted({sample.program for sample in samples})
    order = np.random.default_rng(seed).permutation(len(programs))
    fold = {programs[at]: position % _FOLDS for position, at in enumerate(order)}
    models = [calibrate([sample for sample in samples if fold[sample.program] != k]) for k in range(_FOLDS)]
    return [models[fold[sample.program]].registers(sample.terms) for sample in samples]


def score(estimates: Sequence[int], samples: Collection[Sample]) -> dict[str, float]:
    """Return the figures of merit of estimates of samples."""
    truth = [sample.registers for sample in samples]
    errors = relative_errors(estimates, truth)
    return {
        "programs": len({sample.program for sample in samples}),
        "kernels": len(samples),
        "spearman": round(spearman(estimates, truth), 3),
        "median_relative_error": round(float(np.median(errors)), 3),
        "mean_relative_error": round(float(errors.mean()), 3),
        "largest_relative_error": round(float(errors.max()), 3),
    }
