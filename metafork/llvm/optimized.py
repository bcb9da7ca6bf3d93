"""The optimized IR of a kernel, made once a run: what counts registers of a version, and its leaf, ask for the same.

Kernels that differ in their names alone are one kernel here, called ``NAME``.  Passes run as for one GPU: what another
one needs is left to the code generator.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from metafork.ir.kernel import Kernel
from metafork.llvm.llvm_ir import module_text
from metafork.llvm.ptx_target import optimize
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


def kernel_ir(kernel: Kernel, target: Nvptx, memory: Memory) -> str:
    """Return the IR of a kernel, not yet optimized.  Raises ``ValueError`` as ``module_text`` does."""
    return memory.of(_text, (replace(kernel, name=NAME), target))


def optimized(ir_text: str, passes: tuple[str, ...], memory: Memory) -> str:
    """Return the text of IR after some passes.  Raises ``TargetError``."""
    return memory.of(_optimized, (ir_text, passes))


def named(ir_text: str, name: str) -> str:
    """Return the IR of a kernel under a name of its own."""
    return ir_text.replace(f'@"{NAME}"(', f"@{NAME}(").replace(f"@{NAME}(", f"@{name}(")


def _text(subject: tuple[Kernel, Nvptx], _: object) -> str:
    return module_text(*subject)


def _optimized(subject: tuple[str, tuple[str, ...]], _: object) -> str:
    return optimize(*subject)
