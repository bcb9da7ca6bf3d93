"""The calibrated model behind ``registers_per_thread``: what is measured on a kernel, and what ``ptxas`` makes of it.

A kernel is lowered to LLVM IR and optimized; its live values are counted on the IR CFG and on PTX that LLVM makes of
it, once plainly (code generation at level 0) and once optimized.  ``ptxas`` is modelled by one sentence: *it moves
loads and addresses up to hide latency, freely up to 32 registers, beyond that only up to the next step of occupancy
above what the kernel needs*::

    need = need_base + need_plain*plain.in_order + need_optimized*optimized.in_order,
           at least need_base + at[k] + temporaries[k] for each slow operation k
    want = want_base + want_optimized*optimized.hoisted + want_plain*plain.hoisted + want_ir*ir_live
           + want_load*min(4, loop_loads)
    registers = want                      where want <= 32
                min(want, step(need))     elsewhere, with step(x) the first of 32, 40, 48, ... that is >= x
    and at least need

rounded and kept between ``least`` and 255.  All coefficients are nonnegative.  There are two sets of them: ``text`` for
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
from metafork.leaf_ptx import SHUFFLE, countable, covering_first, passes_of, shuffle_options
from metafork.llvm_ir import module_text
from metafork.llvm_targets import Nvptx
from metafork.ptx.shuffle import shuffle_text
from metafork.ptx_registers import Pressure, pressure
from metafork.ptx_target import parsed, ptx_of, run_pipeline

Kind = Literal["text", "ptx"]
MOST = 255
NVCC_UNROLLS_BY = 4
# Registers a thread at which one more warp fits on a multiprocessor of 64K registers.
STEPS = (32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 168, MOST)
_FORMAT, _VERSION = "metafork-register-model", 1


@dataclass(frozen=True, slots=True)
class Measured:
    """What is counted on one kernel: live 32-bit registers on the IR CFG, on plain and on optimized PTX."""

    ir_live: int
    plain: Pressure
    optimized: Pressure


def measure(kernel: Kernel, ir_strategies: Sequence[str] = ()) -> Measured:
    """Lower, optimize and count.

    Without IR strategies the standard pipeline runs on IR whose loops carry nvcc's unrolling; with them, theirs run on
    the IR as it is, and ``shuffle`` on the PTX.

    Raises ``ValueError`` (``TargetError`` among them) where the kernel cannot be lowered.
    """
    target = Nvptx() if ir_strategies else Nvptx(unroll=NVCC_UNROLLS_BY)
    shuffles = SHUFFLE in ir_strategies
    module = parsed(module_text(covering_first(kernel) if shuffles else kernel, target))
    run_pipeline(module, passes_of(ir_strategies))
    texts = [ptx_of(module, level=level) for level in (0, 3)]
    if shuffles:
        texts = [countable(shuffle_text(text, shuffle_options(kernel)).text) for text in texts]
    plain, optimized = (pressure(text) for text in texts)
    return Measured(most_live_registers(cfg_of(module)), plain, optimized)


@dataclass(frozen=True, slots=True)
class RegisterModel:
    """One set of coefficients; see the module's text for the formula."""

    need_base: float
    need_plain: float
    need_optimized: float
    want_base: float
    want_plain: float
    want_optimized: float
    want_ir: float
    want_load: float
    temporaries: Mapping[str, float]
    least: int

    def need(self, measured: Measured) -> float:
        """Return the registers below which the kernel would spill."""
        plain, optimized = measured.plain, measured.optimized
        need = self.need_base + self.need_plain * plain.in_order + self.need_optimized * optimized.in_order
        slow = (live + self.temporaries[kind.name.lower()] for kind, live in optimized.at.items())
        return max([need, *(self.need_base + registers for registers in slow)])

    def want(self, measured: Measured) -> float:
        """Return the registers with which latency would be hidden best."""
        plain, optimized = measured.plain, measured.optimized
        hoisted = self.want_plain * plain.hoisted + self.want_optimized * optimized.hoisted
        loads = self.want_load * min(4, optimized.loop_loads)
        return self.want_base + hoisted + self.want_ir * measured.ir_live + loads

    def registers(self, measured: Measured) -> int:
        """Return the number of 32-bit registers a thread is expected to use."""
        need = self.need(measured)
        want = max(need, self.want(measured))
        if want > STEPS[0]:
            step = next((step for step in STEPS if step >= round(need)), MOST)
            want = max(need, min(want, step))
        return max(self.least, min(MOST, round(want)))


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
