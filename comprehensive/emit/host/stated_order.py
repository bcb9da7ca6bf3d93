"""C text of schedules that add up floating-point numbers in a stated order, around what their programs become.

``before --> after``, of a schedule that became two programs, whose texts (or dispatches) are ``FIRST`` and ``SECOND``::

    meta_schedule {...}    -->    { float *sum_of_block = n / B > 0 && B > 0 && ... ? __builtin_malloc(...) : 0;
                                    if (n / B > 0 && B > 0 && ... && sum_of_block) { FIRST SECOND }
                                    else {...}
                                    __builtin_free(sum_of_block); }

Where a loop has no iterations, or a nest more than ``MOST_BLOCKS`` or ``MOST_THREADS``, the text is what runs: in its
own order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from metafork.ir.program import Array, Expr
from metafork.ir.translation_unit import Schedule, TranslationUnit
from metafork.printing.expressions import expression

MOST_BLOCKS = 1 << 30
"""Most blocks that are numbered in ``int``."""

MOST_THREADS = 1 << 16
"""Most threads of a block whose numbers lie on the stack where the serial code runs."""


def places(unit: TranslationUnit) -> Iterator[tuple[Schedule, ...]]:
    """Yield the schedules of a file by where they stand in it; two of them where the second ends what one began."""
    place: list[Schedule] = []
    for schedule in unit.schedules:
        place.append(schedule)
        if schedule.stated_order is None or schedule.stated_order.last:
            yield tuple(place)
            place = []


def in_order(place: Sequence[Schedule], texts: Sequence[str], otherwise: str, *, forget: bool = False) -> str:
    """Return one statement that runs statements of the same place in C one after the other; ``otherwise`` its text.

    ``forget`` says that copies of the arrays between them may lie on the device.
    """
    order = place[0].stated_order
    if order is None:
        (text,) = texts
        return text
    condition = " && ".join(
        [*_counted(order.grid, MOST_BLOCKS), *(one for block in order.blocks for one in _counted(block, MOST_THREADS))]
    )
    lines = ["{ /* floating-point numbers are added up in a stated order */"]
    lines += [
        f"{array.element.spelling} *const {array.name} = {condition} ? __builtin_malloc({_size(array)}) : 0;"
        for array in order.parts
    ]
    condition = " && ".join([condition, *(f"{array.name} != 0" for array in order.parts)])
    lines += [f"if ({condition}) {{", *texts]
    for array in order.parts if forget else ():
        lines.append(f"metafork_forget(&(const struct metafork_local){{{array.name}, {_size(array)}}});")
    lines += ["} else {", otherwise, "}", *(f"__builtin_free({array.name});" for array in order.parts), "}"]
    return "\n".join(lines)


def _counted(extents: Sequence[Expr], most: int) -> list[str]:
    """Return conditions under which a nest has iterations, and not too many; none of them overflows."""
    texts = [f"({expression(extent)})" for extent in extents]
    found = [f"{text} > 0" for text in texts]
    limit = str(most)
    for text in texts:
        found.append(f"{text} <= {limit}")
        limit = f"{limit} / {text}"
    return found


def _size(array: Array) -> str:
    (length,) = array.extents
    return f"(__SIZE_TYPE__)({expression(length)}) * sizeof({array.element.spelling})"
