"""Each leaf by itself (``leaves/``): its MetaFork source, its LLVM IR and, where asked for, its PTX or object code.

Making the code of many leaves may take longer than finding them.  Where a time limit ends it, the leaves whose code is
made, the first ones of every tree, stay, and the tree has no leaf where the others were; nor has it one that the back
end has no code for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from comprehensive.emit import LeafCode
from comprehensive.emit.targets.cuda import TARGET as CUDA
from comprehensive.emit.targets.target import NoCodeError, Target
from comprehensive.optimize import Result
from comprehensive.signals import OutOfTimeError, until
from comprehensive.tree.left_out import without_leaves
from comprehensive.tree.page import LeafSource
from comprehensive.tree.schedule_tree import Leaf, ScheduleTree
from metafork.analysis.analyses import Analyses

if TYPE_CHECKING:  # LLVM takes time to load
    from metafork.llvm.amdgpu_target import AmdgpuObject

LEAST_MAKING = 2.0
"""Seconds of processor time for the code of what was found when the time limit has passed already."""

WITH_DEVICE_TEXT = frozenset({"cuda", "hip"})
"""The back ends whose kernels are compiled with ``metafork/device.h``."""
LEFT_OUT = "a leaf is left out"
"""What the subjects of notes about leaves without code begin with."""

_NOT_MADE = "time limit reached before the code of this leaf was made"


class LeafTexts:
    """The code of the leaves of one result for a back end, made once for whoever needs it.

    With ``ptx_target`` there is PTX for that GPU beside it, with ``object_target`` object code for that one of AMD's.
    """

    def __init__(
        self,
        analyses: Analyses,
        ptx_target: str | None = None,
        target: Target = CUDA,
        object_target: str | None = None,
    ) -> None:
        self._analyses = analyses
        self._ptx_target = ptx_target
        self._object_target = object_target
        self._compiled: dict[str, str] = {}
        self._target = target
        self._codes: dict[str, LeafCode] = {}
        self._files: dict[str, tuple[dict[str, str | bytes], str | None]] = {}

    def code_of(self, leaf: Leaf) -> LeafCode:
        """Return the code of a leaf.  Raises ``metafork.lowering.lowering.CannotLowerError``, ``NoCodeError``."""
        if leaf.kernel not in self._codes:
            self._codes[leaf.kernel] = self._target.leaf_code(leaf, self._analyses)
        return self._codes[leaf.kernel]

    def in_time(self, result: Result, deadline: float | None) -> Result:
        """Make the code of the leaves until the deadline (of ``time.monotonic``), and return the result with those.

        The very first leaf is made in any case.  Leaves that the back end has no code for are left out, and notes of
        the trees say why.  Raises ``CannotLowerError``, and ``TargetError`` for a GPU that LLVM does not know.
        """
        numbered = [(tree.program.name, leaf) for tree in result.schedules for leaf in tree.leaves]
        late = {leaf.kernel for _, leaf in numbered}
        reasons: dict[str, dict[int, str]] = {tree.program.name: {} for tree in result.schedules}

        def make(name: str, leaf: Leaf) -> None:
            try:
                for one in _kernels(leaf):
                    self._files_of(one)
            except NoCodeError as error:
                reasons[name][leaf.id] = f"no code for --backend {self._target.name}: {error}"
            late.discard(leaf.kernel)

        for name, leaf in numbered[:1]:
            make(name, leaf)
        with suppress(OutOfTimeError), nullcontext() if deadline is None else until(deadline, LEAST_MAKING):
            for name, leaf in numbered:
                make(name, leaf)
        if not late and not any(reasons.values()):
            return result
        trees = tuple(_left(tree, reasons[tree.program.name], late) for tree in result.schedules)
        left = {leaf.kernel for tree in trees for leaf in tree.leaves}
        if any(leaf.kernel in left and leaf.id in reasons[name] for name, leaf in numbered):
            # A later leaf, and its kernel, have the name of one that was left out.
            self._codes.clear()
            self._files.clear()
            self._compiled.clear()
        return replace(result, schedules=trees)

    def files(self, result: Result) -> tuple[dict[str, str | bytes], list[str]]:
        """Return the files by path, and a sentence for each text that could not be made.

        Raises ``CannotLowerError``, ``ExternalFunctionError``, and ``TargetError`` for the target.
        """
        files: dict[str, str | bytes] = {}
        problems: list[str] = []
        for one in (one for tree in result.schedules for leaf in tree.leaves for one in _kernels(leaf)):
            texts, problem = self._files_of(one)
            files |= texts
            problems += [problem] if problem is not None else []
        return files, problems

    def compiled(self) -> Mapping[str, str]:
        """Return what is said of the code of each kernel, by its name: of object code, and of its copies."""
        return {name: said for name, said in self._compiled.items() if said}

    def _files_of(self, leaf: Leaf) -> tuple[dict[str, str | bytes], str | None]:
        from metafork.llvm import llvm_ir
        from metafork.lowering.copies.wide_copies import copies_text
        from metafork.printing.metafork_text import metafork_text

        if leaf.kernel not in self._files:
            path = f"leaves/{leaf.kernel}"
            code = self.code_of(leaf)
            module = code.ir if code.ir is not None else llvm_ir.module_text(code.kernel)
            texts: dict[str, str | bytes] = {f"{path}.mf": metafork_text(leaf.version.program), f"{path}.ll": module}
            problem: str | None = None
            if self._ptx_target is not None:
                text = _ptx(code, leaf, module, self._ptx_target)
                if isinstance(text, str):
                    texts[f"{path}.ptx"] = text
                else:
                    problem = f"{leaf.kernel} has no PTX file: {text}"
            if self._object_target is not None:
                made = _object(code, leaf, self._object_target)
                if isinstance(made, Exception):
                    problem = f"{leaf.kernel} has no object file: {made}"
                else:
                    texts[f"{path}.o"] = made.code
                    self._compiled[leaf.kernel] = f"as object code for {self._object_target}: {made.resources}"
            copies = copies_text(code.kernel) if code.ir is None and self._target.name in WITH_DEVICE_TEXT else ""
            said = (self._compiled.get(leaf.kernel, ""), copies)
            self._compiled[leaf.kernel] = "; ".join(one for one in said if one)
            self._files[leaf.kernel] = texts, problem
        return self._files[leaf.kernel]

    def sources(self, result: Result) -> dict[str, LeafSource]:
        """Return what ``report.html`` shows of every leaf, by the name of its kernel."""
        from metafork.printing.metafork_text import metafork_text

        leaves = [leaf for tree in result.schedules for leaf in tree.leaves]
        return {
            leaf.kernel: LeafSource(metafork_text(leaf.version.program), self.code_of(leaf).text) for leaf in leaves
        }


def _kernels(leaf: Leaf) -> Iterator[Leaf]:
    """Yield a leaf and its instances in the form of leaves."""
    yield leaf
    yield from map(leaf.of, leaf.instances)


def _left(tree: ScheduleTree, reasons: Mapping[int, str], late: Collection[str]) -> ScheduleTree:
    """Return a tree without the leaves that have no code, with notes why; marked incomplete where some were late."""
    not_made = {leaf.id: _NOT_MADE for leaf in tree.leaves if leaf.kernel in late}
    notes = [(f"{LEFT_OUT} ({leaf.title})", reasons[leaf.id]) for leaf in tree.leaves if leaf.id in reasons]
    if not_made:
        notes.append(("time limit", f"the code of {len(not_made)} of {len(tree.leaves)} leaves was not made"))
    left = without_leaves(tree, {**reasons, **not_made})
    return replace(left, notes=(*left.notes, *notes), complete=left.complete and not not_made)


def _object(code: LeafCode, leaf: Leaf, target: str) -> AmdgpuObject | Exception:
    from metafork.ir.ir_strategies import SHUFFLE
    from metafork.llvm import amdgpu_target, ptx_target

    if SHUFFLE in leaf.version.ir_strategies:
        return ptx_target.TargetError("its warp shuffles are in PTX alone")
    try:
        return amdgpu_target.amdgpu_object(code.kernel, leaf.version.ir_strategies, target)
    except ptx_target.ExternalFunctionError as error:
        return error


def _ptx(code: LeafCode, leaf: Leaf, module: str, target: str) -> str | Exception:
    from metafork.llvm import leaf_ptx, ptx_target

    try:
        if leaf.version.ir_strategies:
            return leaf_ptx.leaf_ptx(code.kernel, leaf.version.ir_strategies, target).text
        return ptx_target.emit_ptx(module, target)
    except ptx_target.ExternalFunctionError as error:
        return error
