"""Drawings of decision trees: DOT text, and SVG by Graphviz (section 3.7 of the paper, Figure 5).

Inner nodes show counter and condition.  Accept edges are solid and thick with a filled head, refuse edges dashed with
an open one, and both carry their word, so that colour is never needed to tell them apart.  Conditions that the path has
already decided are left out of the drawing (``full`` draws them); the strategies applied there stand on the edge.  A
leaf shows what it does: its conditions are those on the way.

Of a long chain of refusals the ends are drawn, and one box between them that says how many conditions it stands for and
which leaves they lead to (``full`` draws them all): nobody reads a hundred boxes in a row, and Graphviz takes a minute.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from metafork.comprehensive.tree.document import LeafDocument, ScheduleDocument, TreeDocument, VariantDocument
from metafork.comprehensive.tree.legend import legend
from metafork.comprehensive.tree.schedule_tree import Inconsistent, LeafReference, Node, NoLeaf, Tree, without_decided

MOST_DRAWN = 300
"""Boxes that are laid out; as many in one chain take the slower of the two programs a minute, in a tree seconds."""

LONGEST_CHAIN = 24
"""Refusals in a row that are all drawn."""

ENDS = 8
"""Conditions that are drawn at each end of a longer chain."""

WIDTH = 40
"""Characters to a line."""

TOP_DOWN_UP_TO = 4
"""Trees with more leaves than this grow to the right, where their height is the number of leaves."""

_FONT = "Courier"
"""A font of fixed width: Graphviz's estimate of a text's width then holds whatever font the viewer has."""

_VIEWED = "ui-monospace,'DejaVu Sans Mono',Menlo,'Liberation Mono','Courier New',monospace"


_OF_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})

_Edge = tuple[str, str, list[str]]
"""Where an edge comes from, its word, and the strategies applied on it."""


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
    most = max((len(schedule.leaves) for schedule in document.schedules), default=0)
    lines = [
        "digraph metafork {",
        f'  graph [rankdir={"TB" if most <= TOP_DOWN_UP_TO else "LR"}, fontname="{_FONT}", fontsize=12, nodesep=0.25,'
        ' ranksep=0.6, pad=0.2, labeljust=l, style=rounded, color="#888888"];',
        f'  node [fontname="{_FONT}", fontsize=11, margin="0.12,0.06", color="#222222"];',
        f'  edge [fontname="{_FONT}", fontsize=10];',
    ]
    for index, schedule in enumerate(document.schedules):
        title = f"{schedule.name}: schedule at line {schedule.line} of {document.source}, function {schedule.function}"
        label = "".join(f"{_quoted(line)}\\l" for line in (title, *legend(schedule)))
        lines += [f"  subgraph cluster_{index} {{", f'    label="{label}";']
        lines += [f"    {line}" for line in _Drawing(schedule, f"k{index}", full).lines()]
        lines.append("  }")
    lines.append("}")
    return "\n".join(lines) + "\n"


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
    """The statements of one schedule's cluster."""

    def __init__(self, schedule: ScheduleDocument, prefix: str, full: bool) -> None:
        self._schedule = schedule
        self._prefix = prefix
        self._full = full
        self._nodes: list[str] = []
        self._edges: list[str] = []
        self._count = 0
        self._folds: dict[int, _Fold] = {}
        self._shown: set[int] = set()

    def lines(self) -> list[str]:
        root, applied = self._skipped(self._schedule.root)
        if not self._full:
            self._find_folds(root)
        if applied:
            # The first decisions were no choice: say what was done before the first real one.
            name = self._fresh("start")
            self._nodes.append(f'{name} [shape=plain, label="start"];')
            self._draw(root, (name, "", applied))
        else:
            self._draw(root, None)
        folded = {leaf for fold in self._folds.values() for node in fold.hidden for leaf in _leaves(node.accept)}
        leaves = [leaf for leaf in self._schedule.leaves if leaf.id in self._shown or leaf.id not in folded]
        return self._nodes + [self._leaf(leaf) for leaf in leaves] + self._edges

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

    def _draw(self, root: Tree, edge: _Edge | None) -> None:
        """Enter the nodes of a tree, parents first, and each edge after all that is below it.

        A chain of refusals may be long, so what is left to do stands on a stack of its own.
        """
        waiting: list[tuple[Tree, _Edge | None] | tuple[str, _Edge]] = [(root, edge)]
        while waiting:
            entry, above = waiting.pop()
            if isinstance(entry, str):
                assert above is not None
                self._edge(above[0], entry, above[1], above[2])
                continue
            fold = self._folds.get(id(entry))
            name = self._node(entry) if fold is None else self._folded(fold)
            if above is not None:
                waiting.append((name, above))
            if fold is not None:
                times = Counter(fold.applied)
                applied = [strategy if n == 1 else f"{strategy}, {n} times" for strategy, n in times.items()]
                waiting.append((fold.then, (name, "refuse all", applied)))
            elif isinstance(entry, Node):
                below: list[tuple[Tree, _Edge | None]] = []
                for side, subtree in (("accept", entry.accept), ("refuse", entry.refuse)):
                    if isinstance(subtree, Inconsistent):
                        continue  # the other side always holds
                    first = [entry.strategy] if side == "refuse" and entry.strategy is not None else []
                    target, applied = self._skipped(subtree)
                    below.append((target, (name, side, first + applied)))
                waiting += reversed(below)

    def _node(self, tree: Tree) -> str:
        """Enter one node, and return its name."""
        match tree:
            case LeafReference(leaf=leaf):
                self._shown.add(leaf)
                return f"{self._prefix}_leaf{leaf}"
            case Inconsistent():
                return self._without_leaf([_row("<b>inconsistent</b>")])
            case NoLeaf(beside=why):
                # The path says when; the strategies tried, and why others did not apply, stand in the report.
                lines = [_row(escape(line)) for line in textwrap.wrap(self._schedule.defined(why), WIDTH)]
                return self._without_leaf([_row("<b>the serial code runs</b>"), *lines])
            case Node():
                name = self._fresh("node")
                sampled = " (sampled)" if tree.value.sampled else ""
                named = self._schedule.words(tree.condition) and not sampled
                rows = [] if named else [_row(f"<i>{escape(tree.counter)}</i>{sampled}", "center")]
                rows += [_row(line, "center") for line in _wrapped(self._schedule.said(tree.condition))]
                self._nodes.append(
                    f'{name} [shape=box, style="rounded,filled", fillcolor="#f2f2f2", label={_table(rows)}];'
                )
                return name

    def _folded(self, fold: _Fold) -> str:
        """Enter the box of a folded chain, and what its conditions lead to; return its name."""
        name = self._fresh("fold")
        counters = ", ".join(dict.fromkeys(node.counter for node in fold.hidden))
        rows = [_row(f"<b>{len(fold.hidden)} more conditions</b>", "center")]
        rows += [_row(f"<i>{escape(line)}</i>", "center") for line in textwrap.wrap(counters, WIDTH)]
        rows += [_row("asked in turn; the tree's JSON has them", "center")]
        self._nodes.append(f'{name} [shape=box, style="rounded,dashed", peripheries=2, label={_table(rows)}];')
        ends = {end for node in fold.hidden for end in _leaves(node.accept)}
        leaves = sorted(ends - {_NO_LEAF})
        if ends == {*leaves[:1]}:
            target = self._node(LeafReference(leaves[0]))
        else:
            target = self._fresh("leaves")
            rows = [_row(f"<b>{escape(line)}</b>") for line in textwrap.wrap(_ranges(leaves, _NO_LEAF in ends), WIDTH)]
            self._nodes.append(f"{target} [shape=box, penwidth=1.6, peripheries=2, label={_table(rows)}];")
        self._edge(name, target, "accept one", [])
        return name

    def _without_leaf(self, rows: Sequence[str]) -> str:
        name = self._fresh("none")
        self._nodes.append(f'{name} [shape=box, style=dashed, margin="0.06,0.04", label={_table(rows)}];')
        return name

    def _skipped(self, tree: Tree) -> tuple[Tree, list[str]]:
        return (tree, []) if self._full else without_decided(tree)

    def _edge(self, source: str, target: str, word: str, applied: Sequence[str]) -> None:
        lines = [word] if word else []
        lines += [f"+ {strategy}" for strategy in applied]
        label = "\\n".join(_quoted(line) for line in lines)
        look = (
            'style=solid, penwidth=1.8, arrowhead=normal, color="#1b5e20", fontcolor="#1b5e20"'
            if not word.startswith("refuse")
            else 'style=dashed, penwidth=1.2, arrowhead=empty, color="#8e2424", fontcolor="#8e2424"'
        )
        self._edges.append(f'{source} -> {target} [label=" {label} ", {look}];')

    def _leaf(self, leaf: LeafDocument) -> str:
        rows = [_row(f"<b>leaf {leaf.id}</b>")]
        rows += [_row(f"<i>{escape(line)}</i>") for line in textwrap.wrap(leaf.title, WIDTH)]
        rows += [row for one in leaf.variants[:-1] if not one.values for row in self._variant(leaf, one)]
        return f'{self._prefix}_leaf{leaf.id} [shape=box, penwidth=1.6, margin="0.06,0.04", label={_table(rows)}];'

    def _variant(self, leaf: LeafDocument, variant: VariantDocument) -> list[str]:
        """Say what goes before the leaf's own variant, and where."""
        title = textwrap.wrap(f"with {leaf.title_of(variant)}", WIDTH)
        return [_row(f"<i>{escape(line)}</i>") for line in title] + [
            _row(line) for line in _wrapped(f"  if {self._schedule.said_together(variant.limits)}")
        ]

    def _fresh(self, kind: str) -> str:
        self._count += 1
        return f"{self._prefix}_{kind}{self._count}"


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


def _wrapped(condition: str) -> list[str]:
    """Break a condition before operators; continuation lines are indented.  The lines are escaped for labels."""
    lines = textwrap.wrap(
        condition.replace(" + ", " +\u00a0").replace(" - ", " -\u00a0").replace(" <= ", " <=\u00a0"),
        WIDTH,
        subsequent_indent="\u00a0\u00a0\u00a0",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [escape(re.sub(r"(?<=\S)\u00a0", " ", line)) for line in lines]


def _row(text: str, align: str = "left") -> str:
    return f'<tr><td align="{align}">{text}</td></tr>'


def _table(rows: Iterable[str]) -> str:
    return f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="1">{"".join(rows)}</table>>'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
