"""Fits the coefficients of ``evaluators.register_model``, and scores them.

The batch limit and the temporaries of slow operations are searched on a small grid, the weights are nonnegative least
squares on relative errors; the grid point with the least mean relative error wins.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from merit import nonnegative_least_squares, relative_errors, spearman

from evaluators.register_model import Measured, RegisterModel

BATCH_LIMITS = (20, 22, 24, 26)
TEMPORARIES = {
    "divide_double": (14, 18),
    "divide_float": (4, 8, 12),
    "divide_long": (8, 14),
    "divide_int": (0, 4, 8),
    "call": (8, 14),
}
LEAST = 8


@dataclass(frozen=True)
class Sample:
    """One kernel: what is counted on it, and what ``ptxas`` says."""

    program: str
    name: str
    measured: Measured
    registers: int


def _fit(samples: Sequence[Sample], limit: int, temporaries: Mapping[str, int]) -> RegisterModel:
    shape = RegisterModel(0, 0, 0, 0, 0, limit, temporaries, LEAST)
    truth = np.array([sample.registers for sample in samples], float)
    matrix = np.array([[1, *shape.terms(sample.measured)] for sample in samples], float)
    base, *weights = nonnegative_least_squares(matrix / truth[:, None], np.ones(len(samples)))
    return RegisterModel(*(round(float(x), 3) for x in (base, *weights)), limit, dict(temporaries), LEAST)


def calibrate(samples: Sequence[Sample]) -> RegisterModel:
    """Return the best model of the grid."""
    occurring = {kind.name.lower() for sample in samples for kind in sample.measured.ptx.at}
    choices = [values if kind in occurring else values[:1] for kind, values in TEMPORARIES.items()]
    candidates = (
        _fit(samples, limit, dict(zip(TEMPORARIES, values, strict=True)))
        for limit in BATCH_LIMITS
        for values in itertools.product(*choices)
    )
    return min(candidates, key=lambda model: score(model, samples)["mean_relative_error"])


def score(model: RegisterModel, samples: Sequence[Sample]) -> dict[str, float]:
    """Return the figures of merit of a model on samples."""
    estimates = [model.registers(sample.measured) for sample in samples]
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


def document(text: RegisterModel, ptx: RegisterModel) -> dict[str, object]:
    """Return the JSON document that ships with the package."""
    return {
        "format": "metafork-register-model",
        "version": 1,
        "target": "sm_80",
        "text": asdict(text),
        "ptx": asdict(ptx),
    }
