"""Fits the coefficients of ``evaluators.register_model``, and scores them.

The latency is a product of powers, so the fit of its logarithm is a least-squares problem; all unknowns but the scale
are nonnegative.  The two numbers of the need are then taken from a grid, by rank correlation minus mean relative error.
The same samples give the same model.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product

import numpy as np
from merit import relative_errors, spearman

from evaluators.register_model import Measured, RegisterModel, latency_terms
from metafork.ptx_registers import Slow

_SWEEPS = 2000
_NEED_BASES = tuple(range(9))
_NEED_SLOPES = (0.6, 0.7, 0.8, 0.9, 1.0)
_FOLDS = 5
# Chosen on kernels as text, by the figures of cross_validated.
_DOUBLE_DIVISION = 14.0
_PLATEAU = (31.0, 38.0)
LEAST = 8


@dataclass(frozen=True)
class Sample:
    """One kernel: what is counted on it, and what ``ptxas`` says."""

    program: str
    name: str
    measured: Measured
    registers: int


def _nonnegative_least_squares(rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Minimize by coordinate descent; the first unknown may be negative."""
    gram, right = rows.T @ rows, rows.T @ values
    found = np.zeros(rows.shape[1])
    for _ in range(_SWEEPS):
        for at in range(len(found)):
            if gram[at, at]:
                step = (right[at] - gram[at] @ found) / gram[at, at]
                found[at] = found[at] + step if at == 0 else max(0.0, found[at] + step)
    return found


def calibrate(samples: Sequence[Sample]) -> RegisterModel:
    """Return the model that fits the samples best."""
    rows = [
        [1.0, *latency_terms(sample.measured), *(float(kind in sample.measured.ptx.at) for kind in Slow)]
        for sample in samples
    ]
    truth = np.array([sample.registers for sample in samples], float)
    scale, a, b, c, *slow = _nonnegative_least_squares(np.array(rows), np.log(truth)).tolist()
    model = RegisterModel(
        scale=round(float(np.exp(scale)), 4),
        exponents=(round(a, 4), round(b, 4), round(c, 4)),
        slow={kind.name.lower(): round(float(np.exp(x)), 3) for kind, x in zip(Slow, slow, strict=True)},
        need_base=0.0,
        need_slope=0.0,
        double_division=_DOUBLE_DIVISION,
        plateau=_PLATEAU,
        least=LEAST,
    )

    def merit(candidate: RegisterModel) -> float:
        estimates = [candidate.registers(sample.measured) for sample in samples]
        return spearman(estimates, truth.tolist()) - float(relative_errors(estimates, truth.tolist()).mean())

    needs = product(_NEED_BASES, _NEED_SLOPES)
    return max((replace(model, need_base=float(base), need_slope=slope) for base, slope in needs), key=merit)


def cross_validated(samples: Sequence[Sample], seed: int) -> list[int]:
    """Return the estimate of each sample by a model that saw none of its program, a fifth of the programs in turn."""
    programs = sorted({sample.program for sample in samples})
    order = np.random.default_rng(seed).permutation(len(programs))
    fold = {programs[at]: position % _FOLDS for position, at in enumerate(order)}
    models = [calibrate([sample for sample in samples if fold[sample.program] != k]) for k in range(_FOLDS)]
    return [models[fold[sample.program]].registers(sample.measured) for sample in samples]


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


def document(text: RegisterModel, ptx: RegisterModel) -> dict[str, object]:
    """Return the JSON document that ships with the package."""
    return {
        "format": "metafork-register-model",
        "version": 2,
        "target": "sm_80",
        "text": asdict(text),
        "ptx": asdict(ptx),
    }
