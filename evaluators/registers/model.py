"""The calibrated model behind ``registers_per_thread``: what is counted on a kernel, and what ``ptxas`` makes of it.

A kernel is lowered to LLVM IR and optimized; on the PTX that LLVM makes of it live values are counted
(``evaluators.registers.pressure``) and the instructions arranged as ``ptxas`` would arrange them
(``evaluators.registers.schedule``).  ``ptxas`` is then modelled by one product of powers of what was counted::

    registers = scale * product over terms of (1 + term)^exponent

rounded and kept between ``LEAST`` and 255.  The terms are the fields of ``Terms``.  Those that count live registers and
slow operations have no negative exponent: more of them never makes the estimate smaller.  Exponents of the numbers of
accesses may be negative: among kernels with equal live values, those with more accesses share more addresses.

One set of exponents serves kernels that nvcc compiles from their text (their IR carries nvcc's unrolling, and is
arranged without the transformations of LLVM's code generator, which nvcc does not have) and leaves that are the PTX
LLVM makes; the term ``from_text`` tells them apart.  ``bench/registers calibrate`` writes ``model.json``,
``score`` says how good it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from functools import cache
from importlib.resources import files
from math import exp, log
from typing import Any

from llvmlite.binding import ModuleRef

from evaluators.registers.code import PtxCode, Slow, read_code
from evaluators.registers.pressure import accesses, hoisted
from evaluators.registers.read_only import with_read_only_loads
from evaluators.registers.schedule import arrangement
from metafork.ir.ir_strategies import SHUFFLE, IrStrategy, Pipeline, pipeline_of
from metafork.ir.kernel import Kernel
from metafork.ir.program import Element, expressions_of, walk_expression, walk_statements
from metafork.lazy_dataclass import dataclass
from metafork.llvm.leaf_ptx import covering_first, shuffle_options
from metafork.llvm.optimized import Forgetful, Memory, kernel_ir, optimized
from metafork.llvm.ptx_target import parsed, ptx_of, run_pipeline, strip_names
from metafork.llvm.targets import Nvptx

LEAST, MOST = 8, 255
NVCC_UNROLLS_BY = 4
_FORMAT, _VERSION = "metafork-register-model", 4


@dataclass(frozen=True, slots=True)
class Terms:
    """What is counted on one kernel.

    ``from_text`` is 1 for a kernel that nvcc compiles, 0 for PTX.  In 32-bit registers: ``wanted`` by the arrangement
    of ``ptxas``; ``hoisted``, the most that live at once when loads and addresses come as early as they can.  The most
    in one region: ``region_loads``, the kinds of divisions (square roots of doubles count as such), and calls.  In the
    whole kernel: ``loads``, ``stores``, accesses to ``shared`` memory, ``wide`` products.
    """

    from_text: int
    wanted: int
    hoisted: int
    divide_double: int
    reciprocal_double: int
    divide_float: int
    divide_int: int
    call: int
    region_loads: int
    wide: int
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
    target = Nvptx() if ir_strategies else Nvptx(unroll=NVCC_UNROLLS_BY)
    shuffles = SHUFFLE in ir_strategies
    memory = memory or Forgetful()
    pipeline = pipeline_of(ir_strategies)
    if not ir_strategies:
        return _without_names(kernel_ir(_in_order_of_use(kernel), target, memory), pipeline.passes, memory)
    text = kernel_ir(covering_first(kernel) if shuffles else kernel, target, memory)
    if pipeline.without or shuffles:
        switched = memory.of(_switched, (text, pipeline)) if pipeline.without else None
        ptx = switched or ptx_of(parsed(optimized(text, pipeline.passes, memory)))
        if shuffles:
            from metafork.ptx.shuffles.shuffle import shuffle_text

            ptx = shuffle_text(ptx, shuffle_options(kernel)).text
        code = read_code(ptx)
        return _terms(code, code, from_text=False)
    return memory.of(_measured, (text, pipeline.passes))


def _switched(subject: tuple[str, Pipeline], _: object) -> str:
    from metafork.llvm.switches import ptx_without  # no default strategy leaves anything out

    text, pipeline = subject
    return ptx_without(pipeline.without, text, pipeline.passes)


def _without_names(text: str, passes: tuple[str, ...], memory: Memory) -> Terms:
    """Return the terms of a kernel that is compiled from its text, once for all that differ in names alone."""
    module = parsed(text)
    strip_names(module)
    return memory.of(_measured_text, (str(module), passes))


def _in_order_of_use(kernel: Kernel) -> Kernel:
    """Return the kernel with its memories in the order in which they are used.

    Two schedules that swap their arrays then have one IR.
    """
    parts = (
        part for stmt in walk_statements(kernel.body) for one in expressions_of(stmt) for part in walk_expression(one)
    )
    used = list(dict.fromkeys(part.array for part in parts if isinstance(part, Element)))
    place = {name: number for number, name in enumerate(used)}
    memories = sorted(kernel.memories, key=lambda memory: place.get(memory.name, len(used)))
    return replace(kernel, memories=tuple(memories))


def _measured_text(subject: tuple[str, tuple[str, ...]], memory: Memory) -> Terms:
    text, passes = subject
    module = run_pipeline(parsed(text), passes)
    strip_names(module)  # those that passes gave
    return memory.of(_counted, Optimized(str(module), True, module))


def _measured(subject: tuple[str, tuple[str, ...]], memory: Memory) -> Terms:
    """Return the terms of what LLVM makes PTX of; its IR is kept, for the leaf."""
    module = parsed(optimized(*subject, memory))
    strip_names(module)
    return memory.of(_counted, Optimized(str(module), False, module))


@dataclass(frozen=True, slots=True)
class Optimized:
    """Optimized IR without names: modules that differ by those alone are equal, as they are counted alike."""

    text: str
    from_text: bool
    module: ModuleRef = field(compare=False)


def _counted(optimized: Optimized, _: object) -> Terms:
    """Return the terms of optimized code."""
    if not optimized.from_text:
        code = read_code(ptx_of(optimized.module))
        return _terms(code, code, from_text=False)
    # At level 3 there would be GVN too, which after the pipeline finds next to nothing, slowly.
    code = read_code(ptx_of(optimized.module, level=2))
    # What nvcc compiles has none of the transformations of LLVM's code generator.
    plain = read_code(ptx_of(optimized.module, level=0))
    return _terms(code, with_read_only_loads(plain), from_text=True)


def _terms(code: PtxCode, plain: PtxCode, *, from_text: bool) -> Terms:
    """Count on the code of a kernel; ``plain`` is the one that is arranged."""
    arranged, number = arrangement(plain), accesses(code)
    return Terms(
        from_text=int(from_text),
        wanted=arranged.wanted,
        hoisted=hoisted(code),
        divide_double=arranged.slow[Slow.DIVIDE_DOUBLE],
        reciprocal_double=arranged.slow[Slow.RECIPROCAL_DOUBLE],
        divide_float=arranged.slow[Slow.DIVIDE_FLOAT],
        divide_int=arranged.slow[Slow.DIVIDE_INT],
        call=arranged.slow[Slow.CALL],
        region_loads=arranged.loads,
        wide=number.wide,
        loads=number.loads,
        stores=number.stores,
        shared=number.shared,
    )


@dataclass(frozen=True, slots=True)
class RegisterModel:
    """The logarithm of the scale, and the exponents in the order of ``NAMES``."""

    log_scale: float
    exponents: tuple[float, ...]

    def registers(self, terms: Terms) -> int:
        """Return the number of 32-bit registers a thread is expected to use."""
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
    text = files("evaluators.registers").joinpath("model.json").read_text(encoding="utf-8")
    return model_from_json(json.loads(text))
