"""The optimized IR of a kernel and its PTX, made once a run: who counts registers, and the leaf, ask for the same.

Kernels that differ in their names alone are one kernel here, called ``NAME``.  Passes run as for one GPU: what another
one needs is left to the code generator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from metafork.ir.kernel import Kernel
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import external_functions, optimize, parsed, ptx_of
from metafork.llvm.targets import Nvptx

NAME = "metafork_kernel"

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")


class Memory(Protocol):
    """What remembers the results of one run, by what was computed and of what (``analysis.analyses``)."""

    def of(self, analysis: Callable[[S, Any], T], subject: S) -> T:
        """Return ``analysis(subject, ...)``, computed once."""
        ...


class Forgetful:
    """Computes everything anew."""

    def of(self, analysis: Callable[[S, Any], T], subject: S) -> T:
        """Return ``analysis(subject, self)``."""
        return analysis(subject, self)


def kernel_ir(kernel: Kernel, target: Nvptx, *, named: bool = True) -> str:
    """Return the IR of a kernel, not yet optimized.  Raises ``ValueError`` as ``module_text`` does."""
    return module_text(replace(kernel, name=NAME), target, named=named)


def leaf_ir(kernel: Kernel, memory: Memory) -> str:
    """Return the IR of a kernel from which the pipelines of leaves start.  Raises as ``kernel_ir``."""
    return memory.of(_leaf_ir, replace(kernel, name=NAME))


def optimized(ir_text: str, passes: tuple[str, ...], memory: Memory) -> str:
    """Return the text of IR after some passes.  Raises ``TargetError``."""
    return memory.of(_optimized, (ir_text, passes))


def emitted(ir_text: str, target: str, memory: Memory) -> Emitted:
    """Return the PTX of optimized IR.  Raises ``TargetError``."""
    return memory.of(_emitted, (ir_text, target))


class Emitted(Struct, frozen=True):
    """PTX, and the functions that it calls and LLVM has no code for."""

    ptx: str
    external: tuple[str, ...]


def external_calls(kernel: Kernel, memory: Memory) -> tuple[str, ...]:
    """Return the names of the functions that a kernel calls and LLVM has no exact code for, sorted."""
    return memory.of(_external, leaf_ir(kernel, memory))


def named(text: str, name: str) -> str:
    """Return the IR or the PTX of a kernel under a name of its own."""
    return text.replace(f'@"{NAME}"(', f"@{NAME}(").replace(NAME, name)


def _leaf_ir(kernel: Kernel, _: object) -> str:
    return module_text(kernel, Nvptx())


def _optimized(subject: tuple[str, tuple[str, ...]], _: object) -> str:
    return optimize(*subject)


def _emitted(subject: tuple[str, str], _: object) -> Emitted:
    text, target = subject
    module = parsed(text)
    external = external_functions(module)
    return Emitted(ptx_of(module, target), external)


def _external(ir_text: str, _: object) -> tuple[str, ...]:
    return external_functions(parsed(ir_text))
