"""The PTX of a kernel under the IR strategies of its leaf (its lambda), warp shuffles included.

Pipelines of LLVM passes are run by ``metafork.llvm.ptx_target``.  ``SHUFFLE`` works on both ends of LLVM.  Before it,
the kernel gets a straight way for launches that cover the grid::

    for (block = blockIdx.x; block < extent; block += gridDim.x) S
    -->
    if (extent <= gridDim.x) { block = blockIdx.x; if (block < extent) S }
    else for (block = blockIdx.x; block < extent; block += gridDim.x) S

since inside a loop whose body has a guard, lanes of one warp may stand in different iterations, and nothing is known
of a neighbour's address.  After it, loads of the PTX are replaced by ``metafork.ptx`` (which proves each of them); a
launch with fewer blocks than the grid takes the loops, and its loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.ir_strategies import SHUFFLE, IrStrategy, pipeline_of
from metafork.ir.kernel import Kernel
from metafork.ir.polynomial_code import conjunction
from metafork.ir.program import (
    Assign,
    Binary,
    Declare,
    Element,
    Expr,
    For,
    If,
    Stmt,
    Var,
    binary,
    parts_of,
    walk_expression,
    walk_statements,
)
from metafork.llvm.optimized import Forgetful, Memory, emitted, leaf_ir, named, optimized
from metafork.llvm.ptx_target import ExternalFunctionError
from metafork.ptx.text.cfg import build_cfg
from metafork.ptx.text.flatten import flatten
from metafork.ptx.text.parser import parse
from metafork.ptx.text.source import Span

if TYPE_CHECKING:  # the emulator takes time to load, and most leaves have no shuffles
    from metafork.ptx.shuffles.shuffle import KernelReport, Options

_WRAPPING = frozenset({"+", "-", "*", "<<"})


class LeafPtx(Struct, frozen=True):
    """``ir`` is the optimized IR, ``plain`` the PTX of it, ``text`` that PTX after ``shuffle``.

    ``report`` says what ``shuffle`` did, ``None`` where it is none of the strategies.
    """

    ir: str
    plain: str
    text: str
    report: KernelReport | None


def leaf_ptx(
    kernel: Kernel, ir_strategies: tuple[IrStrategy, ...], target: str = "sm_80", memory: Memory | None = None
) -> LeafPtx:
    """Return the PTX of a kernel under its IR strategies; ``memory`` may know the IR from when it was counted.

    Raises ``ExternalFunctionError`` where a function without exact code is called, ``TargetError`` for a target that
    LLVM does not know.
    """
    shuffles = SHUFFLE in ir_strategies
    shaped = covering_first(kernel) if shuffles else kernel
    ir, plain = made(shaped, ir_strategies, target, memory)
    if not shuffles:
        return LeafPtx(ir, plain, plain, None)
    from metafork.ptx.shuffles.shuffle import shuffle_text

    result = shuffle_text(plain, shuffle_options(kernel))
    return LeafPtx(ir, plain, result.text, result.kernels[0])


def made(
    kernel: Kernel, ir_strategies: Sequence[IrStrategy], target: str = "sm_80", memory: Memory | None = None
) -> tuple[str, str]:
    """Return the IR of a kernel after the pipeline of its IR strategies, and the PTX of it.  Raises as ``leaf_ptx``."""
    memory = memory or Forgetful()
    pipeline = pipeline_of(ir_strategies)
    text = leaf_ir(kernel, memory)
    if pipeline.without:
        from metafork.llvm.switches import made_without  # no default strategy leaves anything out

        return made_without(pipeline.without, named(text, kernel.name), pipeline.passes, target)
    ir = optimized(text, pipeline.passes, memory)
    code = emitted(ir, target, memory)
    if code.external:
        raise ExternalFunctionError(code.external)
    return named(ir, kernel.name), named(code.ptx, kernel.name)


def shuffle_options(kernel: Kernel) -> Options:
    """Return how the loads of a kernel are replaced.

    C lets nobody rely on signed sums that overflow, so the indices of a program may be taken not to; unsigned ones
    wrap, and in PTX the two look alike.  A kernel with unsigned sums of its own gets proofs without that assumption.
    Lanes' passes are not compared: launches that cover the grid run none of the loops.  Nor is the grid's size, which
    the dispatcher knows.
    """
    from metafork.ptx.shuffles.shuffle import Options

    return Options(signed_index=not _sums_unsigned(covering_only(kernel).body), check_passes=False, grid_fits=False)


def covering_first(kernel: Kernel) -> Kernel:
    """Return the kernel with a straight way, taken by launches with a block for every point of the grid."""
    tests = _covers(kernel.body)
    test = conjunction(tests)
    return kernel if test is None else replace(kernel, body=(If(test, _straight(kernel.body), kernel.body),))


def covering_only(kernel: Kernel) -> Kernel:
    """Return the kernel as a launch runs it that covers the grid."""
    return replace(kernel, body=_straight(kernel.body))


def grid_loop(stmt: Stmt) -> tuple[Declare, Binary] | None:
    """Return the counter and the condition of a loop over blocks, ``None`` for any other statement."""
    match stmt:
        case For(init=Declare(value=Var(name=start)) as init, condition=Binary(op="<") as condition):
            return (init, condition) if start.startswith("blockIdx.") else None
        case _:
            return None


def load_places(ptx: str) -> tuple[frozenset[Span], frozenset[Span]] | None:
    """Return the places of the loads of the one kernel from global memory, outside of loops and inside.

    ``None`` where the control flow is irreducible.  Raises ``PtxError`` for text that is no PTX.
    """
    (kernel,) = parse(ptx).kernels()
    body = flatten(kernel)
    cfg = build_cfg(body)
    if not cfg.reducible:
        return None
    looping = {
        position
        for loop in cfg.loops.values()
        for block in loop.blocks
        for position in range(cfg.blocks[block].start, cfg.blocks[block].end)
    }
    places: tuple[set[Span], set[Span]] = (set(), set())
    for position, instruction in enumerate(body.instructions):
        if instruction.opcode == "ld" and "global" in instruction.modifiers:
            places[position in looping].add(instruction.span)
    return frozenset(places[0]), frozenset(places[1])


def _covers(body: Sequence[Stmt]) -> list[Expr]:
    """Return ``extent <= gridDim`` for each loop over blocks."""
    tests: list[Expr] = []
    for stmt in body:
        found = grid_loop(stmt)
        if found is not None and isinstance(stmt, For):
            init, condition = found
            assert isinstance(init.value, Var)
            blocks = Var(init.value.name.replace("blockIdx", "gridDim"), ScalarType.UNSIGNED_INT)
            tests += [binary("<=", condition.right, blocks), *_covers(stmt.body)]
    return tests


def _straight(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        found = grid_loop(stmt)
        if found is not None and isinstance(stmt, For):
            result += [found[0], If(found[1], _straight(stmt.body), ())]
        else:
            result.append(stmt)
    return tuple(result)


def _sums_unsigned(body: tuple[Stmt, ...]) -> bool:
    updates = (stmt for stmt in walk_statements(body) if isinstance(stmt, Assign) and stmt.op)
    sums = (part for part in parts_of(body) if isinstance(part, Binary) and part.op in _WRAPPING)
    return any(_wraps(stmt.target) for stmt in updates) or any(map(_wraps, sums))


def _wraps(expr: Expr) -> bool:
    """Say whether a sum of this type wraps: an unsigned one, but for thread and block numbers, which are small."""
    if not expr.type.integer or expr.type.signed:
        return False
    names = [part.name for part in walk_expression(expr) if isinstance(part, Var)]
    elements = any(isinstance(part, Element) for part in walk_expression(expr))
    return elements or any("." not in name for name in names)
