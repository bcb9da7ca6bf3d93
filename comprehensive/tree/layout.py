"""Where the boxes of a drawing stand, as DOT statements with places that Graphviz's ``nop2`` keeps.

Conditions that are asked in turn stand in a column.  What one of them leads to stands to its right, beginning at its
height, and the next condition below all of that: so no line crosses another, and a drawing is read as text is.
Lengths are points; the font has a fixed width, so that they are known before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

SIZE = 11
"""Of the font."""
_LETTER = 0.6 * SIZE
_LINE = 16
_MARGIN = 12
"""Between the text of a box and its border, both sides together."""
_GAP = 10
"""Between boxes, and around labels of edges."""
_HEAD = 9
"""The length of an arrow's head."""
_INSET = 14
"""Of the vertical lines, from the left end of their boxes."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge: the lines of its label, and its attributes."""

    label: Sequence[str]
    look: str


@dataclass(slots=True)
class Box:
    """A box, its text as cells of a table and as long as ``letters``, and what stands to its right and below it."""

    name: str
    look: str
    cells: Sequence[str]
    letters: int
    right: tuple[Edge, Box] | None = None
    below: tuple[Edge, Box] | None = None
    left: float = 0
    top: float = 0

    @property
    def width(self) -> float:
        """From end to end."""
        return self.letters * _LETTER + _MARGIN

    @property
    def height(self) -> float:
        """From top to bottom."""
        return len(self.cells) * _LINE + _MARGIN / 2

    @property
    def middle(self) -> float:
        """Where lines from the left meet it, and lines to the right begin."""
        return self.top + (_LINE + _MARGIN / 2) / 2


@dataclass(slots=True)
class Layout:
    """The statements of drawings that stand below each other."""

    bottom: float = 0
    statements: list[str] = field(default_factory=list)

    def heading(self, name: str, lines: Sequence[str]) -> None:
        """Put lines of text below what there is."""
        width, height = max(map(len, lines)) * _LETTER, len(lines) * _LINE
        text = "".join(f"{quoted(line)}\\l" for line in lines)
        place = f'pos="{_at(width / 2, self.bottom + height / 2)}", width={width / 72:.3f}, height={height / 72:.3f}'
        self.statements.append(f'{name} [shape=plaintext, margin=0, {place}, label="{text}"];')
        self.bottom += height + _GAP

    def tree(self, root: Box) -> None:
        """Put a tree below what there is."""
        columns = list(_columns(root))
        left = 0.0
        for boxes in columns:
            for box in boxes:
                box.left = left
            labels = [len(line) for box in boxes if box.right is not None for line in box.right[0].label]
            left += max(box.width for box in boxes) + max(labels, default=0) * _LETTER + 2 * _GAP + _HEAD
        self.bottom = self._place(root, self.bottom) + 2 * _GAP
        every = [box for boxes in columns for box in boxes]
        self.statements += [_node(box) for box in every]
        for box in every:
            self.statements += [_to_the_right(box, *box.right)] if box.right is not None else []
            self.statements += [_downwards(box, *box.below)] if box.below is not None else []

    def _place(self, box: Box, top: float) -> float:
        """Give heights to a column and all to its right; return where they end."""
        while True:
            box.top = top
            end = box.top + box.height
            if box.right is not None:
                edge, other = box.right
                end = max(end, box.middle + (len(edge.label) - 1) * _LINE, self._place(other, top))
            if box.below is None:
                return end
            edge, box = box.below
            top = max(end + _GAP, end + len(edge.label) * _LINE + _HEAD)


def _columns(root: Box) -> Iterator[list[Box]]:
    """Yield the boxes of a tree by columns, from the left, each from above."""
    heads = [root]
    while heads:
        boxes: list[Box] = []
        for head in heads:
            box = head
            boxes.append(box)
            while box.below is not None:
                box = box.below[1]
                boxes.append(box)
        yield boxes
        heads = [box.right[1] for box in boxes if box.right is not None]


def columns_of(root: Box) -> int:
    """Return how many columns a tree has."""
    return sum(1 for _ in _columns(root))


def _node(box: Box) -> str:
    place = _at(box.left + box.width / 2, box.top + box.height / 2)
    size = f"width={box.width / 72:.3f}, height={box.height / 72:.3f}, fixedsize=true"
    table = f'<<table border="0" cellborder="0" cellspacing="0" cellpadding="1">{"".join(box.cells)}</table>>'
    return f'{box.name} [shape=box, {box.look}, pos="{place}", {size}, label={table}];'


def _to_the_right(box: Box, edge: Edge, other: Box) -> str:
    start, end = box.left + box.width, other.left
    above = len(edge.label) * _LETTER * 0
    label = _label(
        edge, end - _HEAD - _GAP / 2 - _width(edge) / 2, box.middle - 8 + (len(edge.label) - 1) * _LINE / 2 + above
    )
    return f"{box.name} -> {other.name} [{_line((start, box.middle), (end, box.middle))}{label}, {edge.look}];"


def _downwards(box: Box, edge: Edge, other: Box) -> str:
    x, start, end = box.left + _INSET, box.top + box.height, other.top
    label = _label(edge, x + _GAP / 2 + _width(edge) / 2, end - _HEAD / 2 - len(edge.label) * _LINE / 2)
    return f"{box.name} -> {other.name} [{_line((x, start), (x, end))}{label}, {edge.look}];"


def _width(edge: Edge) -> float:
    return max(map(len, edge.label), default=0) * _LETTER


def _label(edge: Edge, x: float, y: float) -> str:
    text = "".join(f"{quoted(line)}\\l" for line in edge.label)
    return f', lp="{_at(x, y)}", label="{text}"' if text else ""


def _line(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return a straight line with a head, as the one Bezier curve that DOT has for it."""
    (x, y), (to_x, to_y) = start, end
    base = (to_x - _HEAD, to_y) if y == to_y else (to_x, to_y - _HEAD)
    third = ((base[0] - x) / 3, (base[1] - y) / 3)
    points = [(x + third[0] * i, y + third[1] * i) for i in range(4)]
    return f'pos="e,{_at(to_x, to_y)} {" ".join(_at(*point) for point in points)}"'


def _at(x: float, y: float) -> str:
    """Return a place; heights of DOT grow upwards."""
    return f"{x:.1f},{-y:.1f}"


def quoted(text: str) -> str:
    """Return a text as it stands in a string of DOT."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
