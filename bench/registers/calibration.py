"""Fits the coefficients of ``evaluators.register_model``, and scores them.

The model has steps, so the fit is a search: from one start, one to three coefficients are changed at a time by a seeded
random amount, and what serves the objective (rank correlation minus mean relative error) better is kept.  All
coefficients stay nonnegative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from merit import relative_errors, spearman

from evaluators.register_model import Measured, RegisterModel

_START = {
    "need_base": 4.0,
    "need_plain": 0.6,
    "need_optimized": 0.2,
    "want_base": 6.0,
    "want_plain": 0.4,
    "want_optimized": 0.5,
    "want_ir": 0.0,
    "want_load": 0.6,
}
_TEMPORARIES = {"divide_double": 14.0, "divide_float": 6.0, "divide_long": 8.0, "divide_int": 4.0, "call": 8.0}
_STRIDE = dict.fromkeys(_START, 0.1) | {"need_base": 2.0, "want_base": 2.0, "want_ir": 0.05, "want_load": 0.4}
_STRIDE |= dict.fromkeys(_TEMPORARIES, 3.0)
_TRIALS = 6000
LEAST = 8


@dataclass(frozen=True)
class Sample:
    """One kernel: what is counted on it, and what ``ptxas`` says."""

    program: str
    name: str
    measured: Measured
    registers: int


def _model(values: Mapping[str, float]) -> RegisterModel:
    own = {name: round(values[name], 3) for name in _START}
    return RegisterModel(**own, temporaries={name: round(values[name], 1) for name in _TEMPORARIES}, least=LEAST)


def _objective(model: RegisterModel, samples: Sequence[Sample]) -> float:
    estimates = [model.registers(sample.measured) for sample in samples]
    truth = [sample.registers for sample in samples]
    errors = relative_errors(estimates, truth)
    return spearman(estimates, truth) - float(errors.mean())


def calibrate(samples: Sequence[Sample]) -> RegisterModel:
    """Return the best model that the search finds; the same samples give the same model."""
    random = np.random.default_rng(0)
    occurring = {kind.name.lower() for sample in samples for kind in sample.measured.optimized.at}
    names = [name for name in (*_START, *_TEMPORARIES) if name in _START or name in occurring]
    best = {**_START, **_TEMPORARIES}
    reached = _objective(_model(best), samples)
    for trial in range(_TRIALS):
        candidate = dict(best)
        scale = 1.0 if trial < 0.6 * _TRIALS else 0.4
        for name in random.choice(names, size=random.integers(1, 4), replace=False):
            candidate[name] = max(0.0, candidate[name] + scale * _STRIDE[name] * random.normal())
        value = _objective(_model(candidate), samples)
        if value > reached:
            best, reached = candidate, value
    return _model(best)


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
