"""Each leaf by itself (``leaves/``): its MetaFork source, its LLVM IR and, where asked for, its PTX or object code.

Making the code of many leaves may take longer than finding them.  Where a time limit ends it, the leaves whose code is
made, the first ones of every tree, stay, and the tree has no leaf where the others were; nor has it one that the back
end has no code for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from metafork.analysis.analyses import Analyses
from metafork.analysis.block_sizes import MOST_THREADS
from metafork.comprehensive.emit import LeafCode
from metafork.comprehensive.emit.targets.cuda import TARGET as CUDA
from metafork.comprehensive.emit.targets.target import NoCodeError, Target
from metafork.comprehensive.optimize import Result
from metafork.comprehensive.signals import OutOfTimeError, until
from metafork.comprehensive.tree.left_out import without_kernels
from metafork.comprehensive.tree.page import LeafSource
from metafork.comprehensive.tree.schedule_tree import ScheduleTree, Variant, variant_title
from metafork.printing.metafork_text import metafork_text
from metafork.transform.directive import text_of

if TYPE_CHECKING:  # LLVM takes time to load
    from metafork.llvm.amdgpu_target import AmdgpuObject

LEAST_MAKING = 2.0
"""Seconds of processor time for the code of what was found when the time limit has passed already."""

WITH_DEVICE_TEXT = frozenset({"cuda", "hip"})
"""The back ends whose kernels are compiled with ``metafork/device.h``."""
LEFT_OUT, VARIANT_LEFT_OUT = "a leaf is left out", "a variant is left out"
"""What the subjects of notes about leaves without code begin with, and about variants of others."""

_NOT_MADE = "time limit reached before the code of this leaf was made"
_NO_CODE = "no code for --backend"


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

    def code_of(self, variant: Variant) -> LeafCode:
        """Return the code of a variant.  Raises ``metafork.lowering.lowering.CannotLowerError``, ``NoCodeError``."""
        if variant.kernel not in self._codes:
            self._codes[variant.kernel] = self._target.leaf_code(variant, self._analyses)
        return self._codes[variant.kernel]

    def in_time(self, result: Result, deadline: float | None) -> Result:
        """Make the code of the leaves until the deadline (of ``time.monotonic``), and return the result with those.

        The very first leaf is made in any case, of every leaf its own variant first.  Variants that the back end has no
        code for are left out, and notes of the trees say why.  Raises ``CannotLowerError``, and ``TargetError`` for a
        GPU that LLVM does not know.
        """
        own = [leaf.own for tree in result.schedules for leaf in tree.leaves]
        others = [one for tree in result.schedules for leaf in tree.leaves for one in leaf.variants[:-1]]
        reasons = {one.kernel: _NOT_MADE for one in (*own, *others)}

        def make(variant: Variant) -> None:
            try:
                self._files_of(variant)
            except NoCodeError as error:
                reasons[variant.kernel] = f"{_NO_CODE} {self._target.name}: {error}"
            else:
                del reasons[variant.kernel]

        for one in own[:1]:
            make(one)
        with suppress(OutOfTimeError), nullcontext() if deadline is None else until(deadline, LEAST_MAKING):
            for one in (*own[1:], *others):
                make(one)
        if not reasons:
            return result
        left = replace(result, schedules=tuple(_left(tree, reasons) for tree in result.schedules))
        if any(one.kernel in reasons for one in _variants(left)):
            # A later variant, and its kernel, have the name of one that was left out.
            self._codes.clear()
            self._files.clear()
            self._compiled.clear()
        return left

    def with_notes(self, result: Result) -> Result:
        """Return the result with notes on the kernels that get nothing of what ``meta_min_blocks`` asks for."""
        return replace(result, schedules=tuple(map(self._with_note, result.schedules)))

    def _with_note(self, tree: ScheduleTree) -> ScheduleTree:
        asked = tree.program.min_blocks
        every = [one.kernel for leaf in tree.leaves for one in leaf.variants]
        without = [name for name in every if asked is not None and self._codes[name].kernel.bounds is None]
        if asked is None or not without:
            return tree
        which = "any kernel" if len(without) == len(every) else ", ".join(without)
        reason = (
            f"not asked of {which}: blocks may have {MOST_THREADS} threads, and no multiprocessor runs {asked.value} "
            "such blocks at once. An assertion on the block size, `assert(B <= 256)`, bounds them."
        )
        return replace(tree, notes=(*tree.notes, ("meta_min_blocks", reason)))

    def files(self, result: Result) -> tuple[dict[str, str | bytes], list[str]]:
        """Return the files by path, and a sentence for each text that could not be made.

        Raises ``CannotLowerError``, ``ExternalFunctionError``, and ``TargetError`` for the target.
        """
        files: dict[str, str | bytes] = {}
        problems: list[str] = []
        for one in _variants(result):
            texts, problem = self._files_of(one)
            files |= texts
            problems += [problem] if problem is not None else []
        return files, problems

    def compiled(self) -> Mapping[str, str]:
        """Return what is said of the code of each kernel, by its name: of object code, and of its copies."""
        return {name: said for name, said in self._compiled.items() if said}

    def _files_of(self, variant: Variant) -> tuple[dict[str, str | bytes], str | None]:
        from metafork.llvm import llvm_ir
        from metafork.lowering.copies.wide_copies import copies_text

        if variant.kernel not in self._files:
            path = f"leaves/{variant.kernel}"
            code = self.code_of(variant)
            module = code.ir if code.ir is not None else llvm_ir.module_text(code.kernel)
            texts: dict[str, str | bytes] = {f"{path}.mf": _commented(variant), f"{path}.ll": module}
            problem: str | None = None
            if self._ptx_target is not None:
                text = _ptx(code, variant, module, self._ptx_target)
                if isinstance(text, str):
                    texts[f"{path}.ptx"] = text
                else:
                    problem = f"{variant.kernel} has no PTX file: {text}"
            if self._object_target is not None:
                made = _object(code, variant, self._object_target)
                if isinstance(made, Exception):
                    problem = f"{variant.kernel} has no object file: {made}"
                else:
                    texts[f"{path}.o"] = made.code
                    self._compiled[variant.kernel] = f"as object code for {self._object_target}: {made.resources}"
            copies = copies_text(code.kernel) if code.ir is None and self._target.name in WITH_DEVICE_TEXT else ""
            said = (self._compiled.get(variant.kernel, ""), copies)
            self._compiled[variant.kernel] = "; ".join(one for one in said if one)
            self._files[variant.kernel] = texts, problem
        return self._files[variant.kernel]

    def sources(self, result: Result) -> dict[str, LeafSource]:
        """Return what ``report.html`` shows of every leaf, by the name of its kernel."""
        return {one.kernel: LeafSource(_commented(one), self.code_of(one).text) for one in _variants(result)}


def _variants(result: Result) -> Iterator[Variant]:
    """Yield the variants of all leaves."""
    for tree in result.schedules:
        for leaf in tree.leaves:
            yield from leaf.variants


def _left(tree: ScheduleTree, reasons: Mapping[str, str]) -> ScheduleTree:
    """Return a tree without the variants that have no code, with notes why; marked incomplete where some were late."""
    variants = [(leaf, one) for leaf in tree.leaves for one in leaf.variants]
    late = [one for _, one in variants if reasons.get(one.kernel) == _NOT_MADE]
    notes = []
    for leaf, one in variants:
        if one.kernel not in reasons or one in late:
            continue
        if one is leaf.own:
            notes.append((f"{LEFT_OUT} ({leaf.title})", reasons[one.kernel]))
        elif leaf.kernel not in reasons:
            title = variant_title(one.values, one.effects, leaf.own.effects)
            notes.append((f"{VARIANT_LEFT_OUT} ({title})", reasons[one.kernel]))
    if late:
        notes.append(("time limit", f"the code of {len(late)} of {len(variants)} kernels was not made"))
    left = without_kernels(tree, reasons)
    return replace(left, notes=(*left.notes, *notes), complete=left.complete and not late)


def _object(code: LeafCode, variant: Variant, target: str) -> AmdgpuObject | Exception:
    from metafork.ir.ir_strategies import SHUFFLE
    from metafork.llvm import amdgpu_target, ptx_target

    if SHUFFLE in variant.version.ir_strategies:
        return ptx_target.TargetError("its warp shuffles are in PTX alone")
    try:
        return amdgpu_target.amdgpu_object(code.kernel, variant.version.ir_strategies, target)
    except ptx_target.ExternalFunctionError as error:
        return error


def _ptx(code: LeafCode, variant: Variant, module: str, target: str) -> str | Exception:
    from metafork.llvm import leaf_ptx, ptx_target

    try:
        if variant.version.ir_strategies:
            return leaf_ptx.leaf_ptx(code.kernel, variant.version.ir_strategies, target).text
        return ptx_target.emit_ptx(module, target)
    except ptx_target.ExternalFunctionError as error:
        return error


def _commented(variant: Variant) -> str:
    """Return the program of a variant as text, with the schedule that makes it of the program as it was written."""
    text, schedule = metafork_text(variant.version.program), text_of(variant.schedule)
    return f"/* {schedule} */\n{text}" if schedule else text
