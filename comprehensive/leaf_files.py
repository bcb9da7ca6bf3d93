"""Each leaf for people to read: its MetaFork source, its LLVM IR and, where asked for, its PTX (``leaves/``)."""

from __future__ import annotations

from comprehensive.emit import LeafCode, leaf_code
from comprehensive.optimize import Result
from comprehensive.tree.page import LeafSource
from comprehensive.tree.schedule_tree import Leaf
from metafork.analysis.analyses import Analyses


class LeafTexts:
    """The code of the leaves of one result, made once for whoever needs it."""

    def __init__(self, analyses: Analyses) -> None:
        self._analyses = analyses
        self._codes: dict[str, LeafCode] = {}

    def code_of(self, leaf: Leaf) -> LeafCode:
        """Return the code of a leaf.  Raises ``metafork.lowering.lowering.CannotLowerError``."""
        if leaf.kernel not in self._codes:
            self._codes[leaf.kernel] = leaf_code(leaf, self._analyses)
        return self._codes[leaf.kernel]

    def files(self, result: Result, ptx_target: str | None = None) -> tuple[dict[str, str], list[str]]:
        """Return the files by path, and a sentence for each text that could not be made."""
        from metafork.llvm import llvm_ir
        from metafork.printing.metafork_text import metafork_text

        files: dict[str, str] = {}
        problems: list[str] = []
        for tree in result.schedules:
            kernels = [one for leaf in tree.leaves for one in (leaf, *map(leaf.of, leaf.instances))]
            for leaf in kernels:
                path = f"leaves/{leaf.kernel}"
                files[f"{path}.mf"] = metafork_text(leaf.version.program)
                code = self.code_of(leaf)
                module = code.ir if code.ir is not None else llvm_ir.module_text(code.kernel)
                files[f"{path}.ll"] = module
                if ptx_target is not None:
                    text = _ptx(code, leaf, module, ptx_target)
                    if isinstance(text, str):
                        files[f"{path}.ptx"] = text
                    else:
                        problems.append(f"{leaf.kernel} has no PTX file: {text}")
        return files, problems

    def sources(self, result: Result) -> dict[str, LeafSource]:
        """Return what ``report.html`` shows of every leaf, by the name of its kernel."""
        from metafork.printing.metafork_text import metafork_text

        leaves = [leaf for tree in result.schedules for leaf in tree.leaves]
        return {
            leaf.kernel: LeafSource(metafork_text(leaf.version.program), self.code_of(leaf).text) for leaf in leaves
        }


def _ptx(code: LeafCode, leaf: Leaf, module: str, target: str) -> str | Exception:
    from metafork.llvm import leaf_ptx, ptx_target

    try:
        if leaf.version.ir_strategies:
            return leaf_ptx.leaf_ptx(code.kernel, leaf.version.ir_strategies, target).text
        return ptx_target.emit_ptx(module, target)
    except ptx_target.ExternalFunctionError as error:
        return error
