"""The calibrated model behind ``registers_per_thread``: what is counted on a kernel, and what ``ptxas`` makes of it.

A kernel is lowered to LLVM IR and optimized; the instructions of the PTX that LLVM makes of it are arranged as
``ptxas`` would arrange them (``evaluators.registers.schedule``), and accesses are counted
(``evaluators.registers.pressure``).  ``ptxas`` is then modelled by one product of powers of what was counted::

    registers = scale * product over terms of (1 + term)^exponent

rounded and kept between ``LEAST`` and 255.  The terms are the fields of ``Terms``.  Those that count live registers
and slow operations have no negative exponent: more of them never makes the estimate smaller.  Exponents of the numbers
of accesses may be negative: among kernels with equal live values, those with more accesses share more addresses.

One set of exponents serves kernels that nvcc compiles from their text (their IR carries nvcc's unrolling, and is
arranged without the transformations of LLVM's code generator, which nvcc does not have) and leaves that are the PTX
LLVM makes; the term ``from_text`` tells them apart.  ``bench/registers calibrate`` writes ``model.json``,
``score`` says how good it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import exp, log
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, fields, replace

from metafork.evaluators.registers.code import liveness
from metafork.evaluators.registers.pressure import accesses, weights
from metafork.evaluators.registers.read_only import with_read_only_loads
from metafork.evaluators.registers.reading import read_code
from metafork.evaluators.registers.schedule import arrangement
from metafork.ir.ir_strategies import SHUFFLE, IrStrategy, Pipeline, pipeline_of
from metafork.ir.kernel import Kernel
from metafork.ir.program import Element, parts_of
from metafork.llvm.leaf_ptx import covering_first, shuffle_options
from metafork.llvm.optimized import Forgetful, Memory, emitted, kernel_ir, leaf_ir, optimized
from metafork.llvm.ptx_target import parsed, ptx_of, run_pipeline
from metafork.llvm.targets import Nvptx

LEAST, MOST = 8, 255
NVCC_UNROLLS_BY = 4
NVCC_PASSES = (
    *("simplifycfg", "sroa", "newgvn", "instcombine", "simplifycfg", "O3-function"),
    *("simplifycfg", "loop-unroll", "instcombine", "simplifycfg"),
)
"""What makes code as that of ``O3`` without vectors of iterations, which nvcc does not make, in less time."""
# That of leaves, which are then made once; the code for sm_80 is the same.
_TARGET = "sm_75"
_FORMAT, _VERSION = "metafork-register-model", 6


class Terms(Struct, frozen=True):
    """What is counted on one kernel.

    ``from_text`` is 1 for a kernel that nvcc compiles, 0 for PTX.  In 32-bit registers: ``wanted`` by the arrangement
    of ``ptxas``; ``across``, the most that live behind a region.  The most in one region: ``region_loads``, and
    ``slow`` operations (divisions, roots and calls).  In the whole kernel: ``loads``, ``stores``, accesses to
    ``shared`` memory, and ``block_longs``, values of 64 bits that all threads of a block have in common.
    """

    from_text: int
    wanted: int
    across: int
    block_longs: int
    slow: int
    region_loads: int
    loads: int
    stores: int
    shared: int

    def logarithms(self) -> tuple[float, ...]:
        """Return what the exponents are factors of, in the order of the fields."""
        return tuple(log(1 + value) for value in asdict(self).values())


NAMES = tuple(one.name for one in fields(Terms))
ANY_SIGN = frozenset({"from_text", "loads", "stores", "shared"})
"""The terms whose exponents may be negative."""


def measure(kernel: Kernel, ir_strategies: Sequence[IrStrategy] = (), memory: Memory | None = None) -> Terms:
    """Lower, optimize and count.

    Without IR strategies the standard pipeline runs on IR whose loops carry nvcc's unrolling; with them, theirs run on
    the IR as it is, and ``shuffle`` on the PTX.  ``memory`` remembers the IR of a kernel, and what code was counted: of
    several versions of a program the optimizer may make the same code.

    Raises ``ValueError`` (``TargetError`` among them) where the kernel cannot be lowered.
    """
    memory = memory or Forgetful()
    pipeline = pipeline_of(ir_strategies)
    if not ir_strategies:
        text = kernel_ir(_in_order_of_use(kernel), Nvptx(unroll=NVCC_UNROLLS_BY), named=False)
        return memory.of(_measured_text, text)
    shuffles = SHUFFLE in ir_strategies
    text = leaf_ir(covering_first(kernel) if shuffles else kernel, memory)
    if pipeline.without:
        ptx = memory.of(_switched, (text, pipeline))
    else:
        ptx = emitted(optimized(text, pipeline.passes, memory), _TARGET, memory).ptx
    if shuffles:
        from metafork.ptx.shuffles.shuffle import shuffle_text

        ptx = shuffle_text(ptx, shuffle_options(kernel)).text
    return memory.of(_counted, (ptx, False))


def _switched(subject: tuple[str, Pipeline], _: object) -> str:
    from metafork.llvm.switches import ptx_without  # no default strategy leaves anything out

    text, pipeline = subject
    return ptx_without(pipeline.without, text, pipeline.passes)


def _in_order_of_use(kernel: Kernel) -> Kernel:
    """Return the kernel with its memories in the order in which they are used.

    Two schedules that swap their arrays then have one IR.
    """
    used = list(dict.fromkeys(part.array for part in parts_of(kernel.body) if isinstance(part, Element)))
    place = {name: number for number, name in enumerate(used)}
    memories = sorted(kernel.memories, key=lambda memory: place.get(memory.name, len(used)))
    return replace(kernel, memories=tuple(memories))


def _measured_text(ir_text: str, memory: Memory) -> Terms:
    # Nor has nvcc the transformations of LLVM's code generator above level 0.
    return memory.of(_counted, (ptx_of(run_pipeline(parsed(ir_text), NVCC_PASSES), level=0), True))


def _counted(subject: tuple[str, bool], _: object) -> Terms:
    """Count on PTX, which nvcc or LLVM made of a kernel."""
    ptx, from_text = subject
    code = read_code(ptx)
    weight, live, number = weights(code), liveness(code.blocks), accesses(code)
    arranged = arrangement(with_read_only_loads(code) if from_text else code, weight, live)
    return Terms(
        from_text=int(from_text),
        wanted=arranged.wanted,
        across=arranged.across,
        block_longs=sum(not taken and size == 8 for taken, size in zip(weight, code.sizes, strict=True)),
        slow=arranged.slow,
        region_loads=arranged.loads,
        loads=number.loads,
        stores=number.stores,
        shared=number.shared,
    )


class RegisterModel(Struct, frozen=True):
    """The logarithm of the scale, and the exponents in the order of ``NAMES``."""

    log_scale: float
    exponents: tuple[float, ...]

    def registers(self, terms: Terms) -> int:
        """Return the number of 32-bit registers per thread is expected to use."""
        power = sum(a * term for a, term in zip(self.exponents, terms.logarithms(), strict=True))
        return max(LEAST, min(MOST, round(exp(self.log_scale + power))))


def model_from_json(document: Mapping[str, Any]) -> RegisterModel:
    """Read the coefficients; raises ``ValueError`` for a document of another format or version."""
    if document.get("format") != _FORMAT or document.get("version") != _VERSION:
        raise ValueError("not a register model of this version")
    return RegisterModel(document["log_scale"], tuple(document["exponents"][name] for name in NAMES))


def model_to_json(model: RegisterModel, target: str) -> dict[str, Any]:
    """Return the document that ``model_from_json`` reads."""
    exponents = dict(zip(NAMES, model.exponents, strict=True))
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "target": target,
        "log_scale": model.log_scale,
        "exponents": exponents,
    }


@cache
def shipped_model() -> RegisterModel:
    """Return the calibrated coefficients that come with the package."""
    text = files("metafork.evaluators.registers").joinpath("model.json").read_text(encoding="utf-8")
    return model_from_json(json.loads(text))
