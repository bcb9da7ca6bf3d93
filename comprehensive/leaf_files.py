"""Each leaf for people to read: its MetaFork source, its LLVM IR and, where asked for, its PTX (``leaves/``).

Making the code of many leaves may take longer than finding them.  Where a time limit ends it, the leaves whose code is
made, the first ones of every tree, stay, and the tree has no leaf where the others were.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from comprehensive.case_discussion.interruption import OutOfTimeError, until
from comprehensive.emit import LeafCode, leaf_code
from comprehensive.optimize import Result
from comprehensive.tree.page import LeafSource
from comprehensive.tree.schedule_tree import Leaf, LeafReference, Node, NoLeaf, ScheduleTree, Tree
from metafork.analysis.analyses import Analyses

LEAST_MAKING = 2.0
"""Seconds of processor time for the code of what was found when the time limit has passed already."""

_NOT_MADE = "time limit reached before the code of this leaf was made"


class LeafTexts:
    """The code of the leaves of one result, made once for whoever needs it; PTX where a target is given."""

    def __init__(self, analyses: Analyses, ptx_target: str | None = None) -> None:
        self._analyses = analyses
        self._ptx_target = ptx_target
        self._codes: dict[str, LeafCode] = {}
        self._files: dict[str, tuple[dict[str, str], str | None]] = {}

    def code_of(self, leaf: Leaf) -> LeafCode:
        """Return the code of a leaf.  Raises ``metafork.lowering.lowering.CannotLowerError``."""
        if leaf.kernel not in self._codes:
            self._codes[leaf.kernel] = leaf_code(leaf, self._analyses)
        return self._codes[leaf.kernel]

    def in_time(self, result: Result, deadline: float | None) -> Result:
        """Make the code of the leaves until the deadline (of ``time.monotonic``), and return the result with those.

        The very first leaf is made in any case.  Raises as ``files``.
        """
        if deadline is None:
            return result
        made = [0 for _ in result.schedules]
        first = next((leaf for tree in result.schedules for leaf in tree.leaves), None)
        if first is not None:
            self._make(first)
        with suppress(OutOfTimeError), until(deadline, LEAST_MAKING):
            for index, tree in enumerate(result.schedules):
                for leaf in tree.leaves:
                    self._make(leaf)
                    made[index] += 1
        if first is not None and not any(made):
            made[next(index for index, tree in enumerate(result.schedules) if tree.leaves)] = 1
        trees = tuple(_first_leaves(tree, count) for tree, count in zip(result.schedules, made, strict=True))
        return result if trees == result.schedules else replace(result, schedules=trees)

    def _make(self, leaf: Leaf) -> None:
        for one in _kernels(leaf):
            self._files_of(one)

    def files(self, result: Result) -> tuple[dict[str, str], list[str]]:
        """Return the files by path, and a sentence for each text that could not be made.

        Raises ``CannotLowerError``, ``ExternalFunctionError``, and ``TargetError`` for the target.
        """
        files: dict[str, str] = {}
        problems: list[str] = []
        for one in (one for tree in result.schedules for leaf in tree.leaves for one in _kernels(leaf)):
            texts, problem = self._files_of(one)
            files |= texts
            problems += [problem] if problem is not None else []
        return files, problems

    def _files_of(self, leaf: Leaf) -> tuple[dict[str, str], str | None]:
        from metafork.llvm import llvm_ir
        from metafork.printing.metafork_text import metafork_text

        if leaf.kernel not in self._files:
            path = f"leaves/{leaf.kernel}"
            code = self.code_of(leaf)
            module = code.ir if code.ir is not None else llvm_ir.module_text(code.kernel)
            texts = {f"{path}.mf": metafork_text(leaf.version.program), f"{path}.ll": module}
            problem: str | None = None
            if self._ptx_target is not None:
                text = _ptx(code, leaf, module, self._ptx_target)
                if isinstance(text, str):
                    texts[f"{path}.ptx"] = text
                else:
                    problem = f"{leaf.kernel} has no PTX file: {text}"
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


def _first_leaves(tree: ScheduleTree, count: int) -> ScheduleTree:
    """Return a tree without the leaves after the first ``count``, marked incomplete; itself where there are none."""
    if count == len(tree.leaves):
        return tree

    def without(part: Tree) -> Tree:
        match part:
            case LeafReference(leaf=leaf) if leaf > count:
                return NoLeaf(_NOT_MADE)
            case Node(accept=accept, refuse=refuse):
                return replace(part, accept=without(accept), refuse=without(refuse))
            case _:
                return part

    note = ("time limit", f"the code of {len(tree.leaves) - count} of {len(tree.leaves)} leaves was not made")
    return replace(tree, root=without(tree.root), leaves=tree.leaves[:count], notes=(*tree.notes, note), complete=False)


def _ptx(code: LeafCode, leaf: Leaf, module: str, target: str) -> str | Exception:
    from metafork.llvm import leaf_ptx, ptx_target

    try:
        if leaf.version.ir_strategies:
            return leaf_ptx.leaf_ptx(code.kernel, leaf.version.ir_strategies, target).text
        return ptx_target.emit_ptx(module, target)
    except ptx_target.ExternalFunctionError as error:
        return error
