"""Where the kernel keeps the arrays that threads declare: one private memory for each."""

from __future__ import annotations

import math

from msgspec import Struct, field

from metafork.ir.kernel import Memory, Space
from metafork.ir.names import fresh
from metafork.ir.program import Array, Element, Expr, IntConst, binary


class ThreadMemory(Struct):
    """The private memories of a kernel, made as declarations are met; ``taken`` are the names that are in use.

    Declarations of one name and shape share a memory: no two of them are alive together.
    """

    taken: set[str]
    memories: list[Memory] = field(default_factory=list)
    _placed: dict[str, tuple[Array, str]] = field(default_factory=dict)
    _names: dict[Array, str] = field(default_factory=dict)

    def declare(self, array: Array) -> None:
        """Let the array's name stand for its memory from here on."""
        if array not in self._names:
            known = any(memory.name == array.name for memory in self.memories)
            name = fresh(array.name, self.taken) if known else array.name
            extent = math.prod(extent.value for extent in array.extents if isinstance(extent, IntConst))
            self.memories.append(Memory(name, Space.PRIVATE, array.element, IntConst(extent)))
            self._names[array] = name
        self._placed[array.name] = array, self._names[array]

    @property
    def names(self) -> frozenset[str]:
        """The names that stand for arrays of the thread."""
        return frozenset(self._placed)

    def __contains__(self, name: str) -> bool:
        """Say whether a name stands for an array of the thread."""
        return name in self._placed

    def element(self, element: Element, indices: tuple[Expr, ...]) -> Element:
        """Return an element in its memory, rows one after the other."""
        array, name = self._placed[element.array]
        offset = indices[0]
        for index, extent in zip(indices[1:], array.extents[1:], strict=True):
            offset = binary("+", binary("*", offset, extent), index)
        return Element(name, (offset,), element.type, element.span)
