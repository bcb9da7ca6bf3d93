"""The calibrated model behind ``registers_per_thread``: what is measured on a kernel, and what ``ptxas`` makes of it.

A kernel is lowered to LLVM IR and optimized, its live values are counted on the IR CFG and on the PTX that LLVM makes
of it, and ``ptxas`` is modelled by one sentence: *it moves loads up to hide their latency as long as a batch limit
allows, gives slow operations their temporaries, and adds a constant*::

    pressure  = max(in_order, min(hoisted, batch_limit), at[k] + temporaries[k] for each slow operation k)
    registers = base + pressure_weight*pressure + ir_weight*ir_live + load_weight*min(4, loop_loads)
                + division_weight*(an integer division occurs)

rounded and kept between ``least`` and 255.  All weights are nonnegative.  There are two sets of them: ``text`` for
kernels that nvcc compiles from their text (IR made with nvcc's unrolling in mind), ``ptx`` for leaves that are the PTX
LLVM makes.  ``bench/registers.py calibrate`` writes ``register_model.json``, ``score`` says how good it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from metafork.ir_cfg import cfg_of, most_live_registers
from metafork.kernel import Kernel
from metafork.llvm_ir import module_text
from metafork.llvm_targets import Nvptx
from metafork.ptx_registers import Pressure, Slow, pressure
from metafork.ptx_target import STANDARD, parsed, ptx_of, run_pipeline

Kind = Literal["text", "ptx"]
MOST = 255
NVCC_UNROLLS_BY = 4
_FORMAT, _VERSION = "metafork-register-model", 1


@dataclass(frozen=True, slots=True)
class Measured:
    """What is counted on one kernel: live 32-bit registers on the IR CFG, and on the PTX."""

    ir_live: int
    ptx: Pressure


def measure(kernel: Kernel, ir_strategies: Sequence[str] = ()) -> Measured:
    """Lower, optimize and count.

    Without IR strategies the standard pipeline runs on IR whose loops carry nvcc's unrolling; with them, theirs run on
    the plain IR.  Raises ``ValueError`` (``TargetError`` among them) where the kernel cannot be lowered.
    """
    target = Nvptx() if ir_strategies else Nvptx(unroll=NVCC_UNROLLS_BY)
    module = parsed(module_text(kernel, target))
    run_pipeline(module, tuple(ir_strategies) or STANDARD)
    ptx = ptx_of(module)
    return Measured(most_live_registers(cfg_of(module)), pressure(ptx))


@dataclass(frozen=True, slots=True)
class RegisterModel:
    """One set of coefficients; see the module's text for the formula."""

    base: float
    pressure_weight: float
    ir_weight: float
    load_weight: float
    division_weight: float
    batch_limit: int
    temporaries: Mapping[str, int]
    least: int

    def pressure(self, measured: Measured) -> int:
        """Return the registers that must be live at once."""
        ptx = measured.ptx
        slow = [live + self.temporaries[kind.name.lower()] for kind, live in ptx.at.items()]
        return max(ptx.in_order, min(ptx.hoisted, self.batch_limit), *slow, 0)

    def terms(self, measured: Measured) -> tuple[int, int, int, int]:
        """Return what the four weights multiply, in their order."""
        divides = Slow.DIVIDE_INT in measured.ptx.at or Slow.DIVIDE_LONG in measured.ptx.at
        return self.pressure(measured), measured.ir_live, min(4, measured.ptx.loop_loads), int(divides)

    def registers(self, measured: Measured) -> int:
        """Return the number of 32-bit registers a thread is expected to use."""
        weights = (self.pressure_weight, self.ir_weight, self.load_weight, self.division_weight)
        total = self.base + sum(w * term for w, term in zip(weights, self.terms(measured), strict=True))
        return max(self.least, min(MOST, round(total)))


def model_from_json(document: Mapping[str, Any], kind: Kind) -> RegisterModel:
    """Read one set of coefficients; raises ``ValueError`` for a document of another format or version."""
    if document.get("format") != _FORMAT or document.get("version") != _VERSION:
        raise ValueError("not a register model of this version")
    return RegisterModel(**document[kind])


@cache
def shipped_model(kind: Kind) -> RegisterModel:
    """Return the calibrated coefficients that come with the package."""
    text = files("evaluators").joinpath("register_model.json").read_text(encoding="utf-8")
    return model_from_json(json.loads(text), kind)
