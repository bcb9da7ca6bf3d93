"""The calibrated model behind ``registers_per_thread``: what is measured on a kernel, and what ``ptxas`` makes of it.

A kernel is lowered to LLVM IR and optimized; its live values are counted on the IR CFG and on the PTX that LLVM makes
of it.  ``ptxas`` is modelled by three sentences.  *It moves loads and addresses up to hide latency, the more of them
the more there are to move, but each further one costs it more.*  *It cannot go below what lives at once in whichever of
the two orders, that of the IR and that of the PTX, needs less, nor below what lives across a division of doubles, which
is a subroutine.*  *Where that comes out a little above 32 registers, the most with which all warps of a multiprocessor
fit, it finds an order with 32*::

    latency = scale * (1 + hoisted)^a * (1 + thread)^b * (4 + min(8, loop_loads))^c * product of slow[k]
    need = max(need_base + need_slope * min(thread, in_order), double_division + at[divide_double])
    registers = 32 where plateau[0] < max(latency, need) < plateau[1], else max(latency, need)

rounded and kept between ``least`` and 255.  ``thread`` is counted on the IR CFG, ``in_order``, ``hoisted`` and
``loop_loads`` on the PTX; ``slow`` has a factor for each kind of slow operation that occurs.  No exponent and no slope
is negative and no factor is less than 1, so nothing that is counted makes the estimate smaller.  There are two sets of
coefficients: ``text`` for kernels that nvcc compiles from their text (IR made with nvcc's unrolling in mind), ``ptx``
for leaves that are the PTX LLVM makes.  ``bench/registers.py calibrate`` writes ``register_model.json``, ``score`` says
how good it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp, log, prod
from typing import Any, Literal

from metafork.ir_cfg import cfg_of, thread_registers
from metafork.kernel import Kernel
from metafork.leaf_ptx import SHUFFLE, countable, covering_first, passes_of, shuffle_options
from metafork.llvm_ir import module_text
from metafork.llvm_targets import Nvptx
from metafork.ptx.shuffle import shuffle_text
from metafork.ptx_registers import Pressure, Slow, pressure
from metafork.ptx_target import parsed, ptx_of, run_pipeline

Kind = Literal["text", "ptx"]
MOST = 255
ALL_WARPS = 32
NVCC_UNROLLS_BY = 4
PTXAS_UNROLLS_BY = 4
_MOST_LOADS = 8
_FORMAT, _VERSION = "metafork-register-model", 2


@dataclass(frozen=True, slots=True)
class Measured:
    """What is counted on one kernel: ``thread``, live 32-bit registers of a thread on the IR CFG, and its PTX."""

    thread: int
    ptx: Pressure


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
    ptx = ptx_of(module)
    if shuffles:
        ptx = countable(shuffle_text(ptx, shuffle_options(kernel)).text)
    unroll = PTXAS_UNROLLS_BY if ir_strategies else 1
    return Measured(thread_registers(cfg_of(module)), pressure(ptx, unroll))


def latency_terms(measured: Measured) -> tuple[float, float, float]:
    """Return the logarithms that the exponents of the latency are factors of."""
    loads = min(_MOST_LOADS, measured.ptx.loop_loads)
    return log(1 + measured.ptx.hoisted), log(1 + measured.thread), log(4 + loads)


def least_live(measured: Measured) -> int:
    """Return the live registers in whichever of the two orders needs less."""
    return min(measured.thread, measured.ptx.in_order)


@dataclass(frozen=True, slots=True)
class RegisterModel:
    """One set of coefficients; ``exponents`` are those of ``latency_terms``.  See the module's text for the formula."""

    scale: float
    exponents: tuple[float, float, float]
    slow: Mapping[str, float]
    need_base: float
    need_slope: float
    double_division: float
    plateau: tuple[float, float]
    least: int

    def latency(self, measured: Measured) -> float:
        """Return the registers with which ``ptxas`` hides latency."""
        power = sum(a * term for a, term in zip(self.exponents, latency_terms(measured), strict=True))
        return self.scale * exp(power) * prod(self.slow[kind.name.lower()] for kind in measured.ptx.at)

    def need(self, measured: Measured) -> float:
        """Return the registers below which the kernel would spill."""
        need = self.need_base + self.need_slope * least_live(measured)
        across = measured.ptx.at.get(Slow.DIVIDE_DOUBLE)
        return need if across is None else max(need, self.double_division + across)

    def registers(self, measured: Measured) -> int:
        """Return the number of 32-bit registers a thread is expected to use."""
        count = max(self.latency(measured), self.need(measured))
        if self.plateau[0] < count < self.plateau[1]:
            return ALL_WARPS
        return max(self.least, min(MOST, round(count)))


def model_from_json(document: Mapping[str, Any], kind: Kind) -> RegisterModel:
    """Read one set of coefficients; raises ``ValueError`` for a document of another format or version."""
    if document.get("format") != _FORMAT or document.get("version") != _VERSION:
        raise ValueError("not a register model of this version")
    fields = document[kind]
    return RegisterModel(**{**fields, "exponents": tuple(fields["exponents"]), "plateau": tuple(fields["plateau"])})


@cache
def shipped_model(kind: Kind) -> RegisterModel:
    """Return the calibrated coefficients that come with the package."""
    text = files("evaluators").joinpath("register_model.json").read_text(encoding="utf-8")
    return model_from_json(json.loads(text), kind)
