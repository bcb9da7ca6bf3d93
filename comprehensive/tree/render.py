"""Drawings of decision trees: DOT text, and SVG by Graphviz (section 3.7 of the paper, Figure 5).

Conditions that are asked in turn stand in a column, and what one of them leads to stands beside it (``layout``).
Accept edges are solid and thick with a filled head, refuse edges dashed with an open one, and both carry their word:
colour is never needed to tell them apart.  Conditions that the path has already decided are left out of the drawing
(``full`` draws them); the strategies applied there stand on the edge.  A leaf shows what it does where it is first met:
its conditions are those on the way.

Of a long chain of refusals the ends are drawn, and one box between them that says how many conditions it stands for and
which leaves they lead to (``full`` draws them all): nobody reads a hundred boxes in a row.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from metafork.comprehensive.tree.document import ScheduleDocument, TreeDocument
from metafork.comprehensive.tree.layout import SIZE, Box, Edge, Layout, columns_of
from metafork.comprehensive.tree.legend import legend
from metafork.comprehensive.tree.schedule_tree import Inconsistent, LeafReference, Node, NoLeaf, Tree, without_decided

MOST_DRAWN = 300
"""Boxes that are drawn."""

LONGEST_CHAIN = 24
"""Refusals in a row that are all drawn."""

ENDS = 8
"""Conditions that are drawn at each end of a longer chain."""

WIDTH = 40
"""Characters to a line, in drawings of up to three columns."""

ACROSS = 3 * WIDTH
"""Characters to all columns of wider ones."""

LEAST_WIDTH = 20

_FONT = "Courier"
"""A font of fixed width: Graphviz's estimate of a text's width then holds whatever font the viewer has."""

_VIEWED = "ui-monospace,'DejaVu Sans Mono',Menlo,'Liberation Mono','Courier New',monospace"


_OF_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})

_ACCEPTED = 'style=solid, penwidth=1.8, arrowhead=normal, color="#1b5e20", fontcolor="#1b5e20"'
_REFUSED = 'style=dashed, penwidth=1.2, arrowhead=empty, color="#8e2424", fontcolor="#8e2424"'


class NoGraphvizError(Exception):
    """There is no Graphviz to draw with; the message says what to install."""


class TooLargeError(Exception):
    """The tree has more boxes than are laid out within reasonable time; DOT text can be had of it."""


class UnknownKindError(Exception):
    """Graphviz writes no files of a kind."""


def escape(text: str) -> str:
    """Return a text as HTML has it: ``html.escape`` without the module's table of all entities there are."""
    return text.translate(_OF_HTML)


def dot(document: TreeDocument, full: bool = False) -> str:
    """Return the drawing of all schedules of a file as DOT text; equal documents give equal texts."""
    layout = Layout()
    for index, schedule in enumerate(document.schedules):
        title = f"{schedule.name}: schedule at line {schedule.line} of {document.source}, function {schedule.function}"
        layout.heading(f"k{index}_title", [title, *legend(schedule)])
        layout.tree(_drawn(schedule, f"k{index}", full))
    return "\n".join(
        [
            "digraph metafork {",
            f'  graph [layout=nop2, pad=0.2, fontname="{_FONT}"];',
            f'  node [fontname="{_FONT}", fontsize={SIZE}, margin=0, color="#222222"];',
            f'  edge [fontname="{_FONT}", fontsize={SIZE}];',
            *(f"  {statement}" for statement in layout.statements),
            "}",
            "",
        ]
    )


def _drawn(schedule: ScheduleDocument, prefix: str, full: bool) -> Box:
    """Return the boxes of a tree; the more columns there are, the narrower they are."""
    root = _Drawing(schedule, prefix, full, WIDTH).root()
    width = max(LEAST_WIDTH, ACROSS // columns_of(root))
    return root if width >= WIDTH else _Drawing(schedule, prefix, full, width).root()


def svg(dot_text: str, seconds: float | None = None) -> str:
    """Return the SVG of a DOT text; ``seconds`` bound how long that takes.

    Raises ``NoGraphvizError``, ``TooLargeError``, ``TimeoutExpired``, and ``CalledProcessError`` where drawing fails.
    """
    text = drawn(dot_text, "svg", seconds).decode("utf-8")
    return text.replace(f'font-family="{_FONT}"', f'font-family="{_VIEWED}"').replace(
        f'font-family="{_FONT},monospace"', f'font-family="{_VIEWED}"'
    )


def drawn(dot_text: str, kind: str, seconds: float | None = None) -> bytes:
    """Return the drawing of a DOT text as ``svg``, ``png``, or another kind that the Graphviz here writes.

    Raises ``UnknownKindError`` where it writes none of that kind, and what ``svg`` does.
    """
    boxes = dot_text.count(" [shape=")
    if boxes > MOST_DRAWN:
        raise TooLargeError(f"the tree has {boxes} boxes, and more than {MOST_DRAWN} take Graphviz too long")
    try:
        done = subprocess.run(
            [_graphviz(), f"-T{kind}"],
            input=dot_text.encode(errors="replace"),
            capture_output=True,
            check=True,
            timeout=seconds,
        )
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace")
        if "not recognized" in said:
            what = f"the Graphviz that is installed does not write .{kind}; .svg and .dot are written"
            raise UnknownKindError(what) from None
        raise subprocess.CalledProcessError(error.returncode, error.cmd, stderr=said) from None
    return done.stdout


def _graphviz() -> str:
    """Find ``dot``, or the ``graphviz-pure`` that is installed beside this interpreter."""
    found = shutil.which("dot") or shutil.which("graphviz-pure")
    found = found or shutil.which("graphviz-pure", path=Path(sys.executable).parent)
    if found is None:
        import sysconfig  # where nothing stands beside the interpreter

        found = shutil.which("graphviz-pure", path=sysconfig.get_path("scripts"))
    if found is None:
        raise NoGraphvizError("neither dot nor graphviz-pure is installed; `pip install graphviz-pure` brings one")
    return found


_NO_LEAF = 0
"""Stands among the numbers of leaves, which begin with 1, for an end without one."""


class _Fold(NamedTuple):
    """The midst of a chain of refusals: its conditions, the strategies on their refuse edges, and what follows."""

    hidden: tuple[Node, ...]
    applied: tuple[str, ...]
    then: Tree


class _Drawing:
    """The boxes of one schedule, with ``width`` characters to a line."""

    def __init__(self, schedule: ScheduleDocument, prefix: str, full: bool, width: int) -> None:
        self._schedule = schedule
        self._prefix = prefix
        self._full = full
        self._width = width
        self._count = 0
        self._folds: dict[int, _Fold] = {}
        self._shown: set[int] = set()

    def root(self) -> Box:
        root, applied = self._skipped(self._schedule.root)
        if not self._full:
            self._find_folds(root)
        if not applied:
            return self._column(root)
        # The first decisions were no choice: say what was done before the first real one.
        start = self._box(self._fresh("start"), "color=none", [_Cell("start")])
        start.below = (_edge("", applied), self._column(root))
        return start

    def _find_folds(self, root: Tree) -> None:
        """Note, by the first node that is not drawn, the midst of every long chain."""
        heads = [root]
        while heads:
            tree = heads.pop()
            chain: list[tuple[Node, list[str]]] = []
            while isinstance(tree, Node):
                heads.append(self._skipped(tree.accept)[0])
                following, applied = self._skipped(tree.refuse)
                chain.append((tree, [tree.strategy, *applied] if tree.strategy is not None else applied))
                tree = following
            if len(chain) > LONGEST_CHAIN:
                hidden = chain[ENDS:-ENDS]
                applied = [strategy for _, strategies in hidden for strategy in strategies]
                fold = _Fold(tuple(node for node, _ in hidden), tuple(applied), chain[-ENDS][0])
                self._folds[id(hidden[0][0])] = fold

    def _column(self, tree: Tree) -> Box:
        """Return the box of a tree, with what is asked after it below, and what each leads to at the right."""
        first = box = self._of(tree)
        while isinstance(tree, Node):
            fold = self._folds.get(id(tree))
            if fold is None:
                (edge, following), *beside = self._sides(tree)
                for over, other in beside:
                    box.right = (over, self._column(other))
            else:
                times = Counter(fold.applied)
                applied = [strategy if n == 1 else f"{strategy}, {n} times" for strategy, n in times.items()]
                edge, following = _edge("refuse all", applied), fold.then
                box.right = (_edge("accept one"), self._ends_of(fold))
            below = self._of(following)
            box.below = (edge, below)
            box, tree = below, following
        return first

    def _sides(self, node: Node) -> list[tuple[Edge, Tree]]:
        """Return what is drawn below a condition, then what is drawn beside it: an end, or else what it leads to."""
        found = []
        for word, side in (("refuse", node.refuse), ("accept", node.accept)):
            if not isinstance(side, Inconsistent):  # else the other side always holds
                first = [node.strategy] if word == "refuse" and node.strategy is not None else []
                target, applied = self._skipped(side)
                found.append((_edge(word, [*first, *applied]), target))
        conditions = [isinstance(target, Node) for _, target in found]
        return found[::-1] if conditions == [False, True] else found

    def _of(self, tree: Tree) -> Box:
        """Return the box of a tree alone."""
        match tree:
            case LeafReference(leaf=leaf):
                return self._leaf(leaf)
            case Inconsistent():
                return self._without_leaf([_Cell("inconsistent", "b")])
            case NoLeaf(beside=why):
                # The path says when; the strategies tried, and why others did not apply, stand in the report.
                lines = textwrap.wrap(self._schedule.defined(why), self._width)
                return self._without_leaf([_Cell("the serial code runs", "b"), *map(_Cell, lines)])
            case Node() if id(tree) in self._folds:
                return self._folded(self._folds[id(tree)])
            case Node():
                sampled = " (sampled)" if tree.value.sampled else ""
                named = self._schedule.words(tree.condition) and not sampled
                cells = [] if named else [_Cell(f"{tree.counter}{sampled}", "i", "center")]
                cells += [_Cell(line, align="center") for line in self._wrapped(self._schedule.said(tree.condition))]
                return self._box(self._fresh("node"), 'style="rounded,filled", fillcolor="#f2f2f2"', cells)

    def _folded(self, fold: _Fold) -> Box:
        """Return the box that stands for a folded chain."""
        counters = ", ".join(dict.fromkeys(node.counter for node in fold.hidden))
        cells = [
            _Cell(f"{len(fold.hidden)} more conditions", "b", "center"),
            *(_Cell(line, "i", "center") for line in textwrap.wrap(counters, self._width)),
            _Cell("asked in turn; the tree's JSON has them", align="center"),
        ]
        return self._box(self._fresh("fold"), 'style="rounded,dashed", peripheries=2', cells)

    def _ends_of(self, fold: _Fold) -> Box:
        """Return the box that says where the conditions of a folded chain lead to."""
        ends = {end for node in fold.hidden for end in _leaves(node.accept)}
        leaves = sorted(ends - {_NO_LEAF})
        if ends == {*leaves[:1]}:
            return self._leaf(leaves[0])
        lines = textwrap.wrap(_ranges(leaves, _NO_LEAF in ends), self._width)
        return self._box(self._fresh("leaves"), "penwidth=1.6, peripheries=2", [_Cell(line, "b") for line in lines])

    def _without_leaf(self, cells: Sequence[_Cell]) -> Box:
        return self._box(self._fresh("none"), "style=dashed", cells)

    def _skipped(self, tree: Tree) -> tuple[Tree, list[str]]:
        return (tree, []) if self._full else without_decided(tree)

    def _leaf(self, number: int) -> Box:
        """Return the box of a leaf: what it does, and what goes before its own variant; later only its name."""
        if number in self._shown:
            return self._box(self._fresh("again"), 'color="#222222"', [_Cell(f"leaf {number}")])
        self._shown.add(number)
        leaf = self._schedule.leaves[number - 1]
        cells = [_Cell(f"leaf {number}", "b"), *(_Cell(line, "i") for line in textwrap.wrap(leaf.title, self._width))]
        for one in leaf.variants[:-1]:
            if not one.values:
                cells += [_Cell(line, "i") for line in textwrap.wrap(f"with {leaf.title_of(one)}", self._width)]
                limits = self._schedule.said_together(one.limits)
                cells += map(_Cell, self._wrapped(f"  if {limits}", "     "))
        return self._box(f"{self._prefix}_leaf{number}", "penwidth=1.6", cells)

    def _box(self, name: str, look: str, cells: Sequence[_Cell]) -> Box:
        return Box(name, look, [cell.row for cell in cells], max(len(cell.text) for cell in cells))

    def _wrapped(self, condition: str, indent: str = "") -> list[str]:
        """Break a condition before operators."""
        lines = textwrap.wrap(
            re.sub(r" (<=|>=|<|>|\+|-) ", " \\1\u00a0", condition),
            self._width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [line.replace("\u00a0", " ") for line in lines]

    def _fresh(self, kind: str) -> str:
        self._count += 1
        return f"{self._prefix}_{kind}{self._count}"


def _edge(word: str, applied: Sequence[str] = ()) -> Edge:
    lines = [word] if word else []
    return Edge(
        [*lines, *(f"+ {strategy}" for strategy in applied)], _REFUSED if word.startswith("refuse") else _ACCEPTED
    )


def _leaves(tree: Tree) -> set[int]:
    """Return the numbers of the leaves in a tree, and ``_NO_LEAF`` where some way ends without one."""
    found: set[int] = set()
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case LeafReference(leaf=leaf):
                found.add(leaf)
            case Node(accept=accept, refuse=refuse):
                waiting += (accept, refuse)
            case NoLeaf():
                found.add(_NO_LEAF)
            case Inconsistent():
                pass
    return found


def _ranges(leaves: Sequence[int], none: bool) -> str:
    """Return numbers in ascending order as text: ``leaves 3 to 7, 9``, and ``or no leaf`` where there may be none."""
    if not leaves:
        return "no leaf"
    parts: list[tuple[int, int]] = []
    for leaf in leaves:
        if parts and parts[-1][1] == leaf - 1:
            parts[-1] = (parts[-1][0], leaf)
        else:
            parts.append((leaf, leaf))
    numbers = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in parts)
    return f"{'leaf' if len(leaves) == 1 else 'leaves'} {numbers}{' or no leaf' if none else ''}"


class _Cell(NamedTuple):
    """A line of a box; ``mark`` is an element of HTML."""

    text: str
    mark: str = ""
    align: str = "left"

    @property
    def row(self) -> str:
        text = escape(self.text)
        marked = f"<{self.mark}>{text}</{self.mark}>" if self.mark else text
        return f'<tr><td align="{self.align}">{marked}</td></tr>'
