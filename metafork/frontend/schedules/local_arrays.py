"""Arrays that a schedule declares: a block's, in its shared memory, and a thread's own.

A thread's own array has constant extents and may have an initialiser, which becomes assignments: what braces leave out
is 0, as in C.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product

from msgspec.structs import replace

from metafork.frontend.schedules.scopes import Scopes
from metafork.frontend.schedules.symbols import ArraySymbol
from metafork.frontend.schedules.values.initialisers import MisfitError, placed
from metafork.frontend.text import syntax
from metafork.frontend.text.reporter import Reporter
from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import NoValueError, converted, integer_value
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Span

MOST_WRITTEN_OUT = 16
"""The most elements that get their zeros by a statement each."""
MOST_BYTES = 16384
"""The largest array of a thread: a thousand threads of it are 16 MiB of a multiprocessor's local memory."""


def number_of(value: ir.Expr, type_: ScalarType) -> int | None:
    """Return the value of a ``const`` scalar of a type, ``None`` where it is no number or the type is narrow."""
    if not (type_.integer and value.type.integer) or type_.size < ir.INT.size:
        return None
    try:
        return converted(integer_value(value, {}), type_)
    except NoValueError:
        return None


class LocalArrays:
    """Builds declarations of arrays.

    ``extent`` builds an extent and ``value`` a value; both raise ``RefusedError``, as the methods do.
    """

    def __init__(
        self,
        reporter: Reporter,
        scopes: Scopes,
        extent: Callable[[syntax.Expression], ir.Expr],
        value: Callable[[syntax.Expression], ir.Expr],
    ) -> None:
        self._reporter = reporter
        self._scopes = scopes
        self._extent = extent
        self._value = value

    def of_block(
        self, declarator: syntax.Declarator, element: ScalarType, slots: tuple[ir.Slot, ...] = ()
    ) -> ir.BlockArray:
        """Declare an array of the block; its last extent is that of the ``slots`` where its elements are structures."""
        name, span = declarator.name, declarator.span
        if declarator.value is not None:
            raise self._reporter.refuse("MF0221", span, f"the block's array `{name}` is initialised")
        array = replace(self._array(declarator, element, self._extent), slots=slots)
        self._enter(declarator, array, of_block=True)
        return ir.BlockArray(array, span)

    def of_thread(
        self,
        declarator: syntax.Declarator,
        element: ScalarType,
        slots: tuple[ir.Slot, ...] = (),
        items: Callable[[syntax.Braces, tuple[int, ...]], dict[int, syntax.Expression | ir.Expr]] | None = None,
    ) -> tuple[ir.PrivateArray, tuple[ir.Stmt, ...]]:
        """Declare an array of the thread; return the declaration and the assignments of its initialiser.

        Where its elements are structures, ``items`` says where in it the values in braces stand.
        """
        name, span = declarator.name, declarator.span
        array = self._array(declarator, element, self._value)
        extents: list[int] = []
        for extent in array.extents:
            try:
                extents.append(integer_value(extent, {}))
            except NoValueError:
                message = f"an extent of `{name}`, an array of a thread, is no constant"
                raise self._reporter.refuse("MF0209", extent.span, message) from None
            if extents[-1] < 1:
                message = f"an extent of `{name}` is {extents[-1]}"
                raise self._reporter.refuse(
                    "MF0209", extent.span, message, reason="an array has an element.", way_out="make it 1 or more."
                )
        bytes_ = math.prod(extents) * max(element.size, *(slot.type.size for slot in slots), 1)
        if bytes_ > MOST_BYTES:
            message = f"`{name}`, an array of a thread, has {bytes_} bytes"
            raise self._reporter.refuse(
                "MF0209",
                span,
                message,
                reason=f"every thread has one, in memory of its own: more than {MOST_BYTES} bytes are too many.",
                way_out="use an array of the function, with an index for the threads.",
            )
        fixed = ir.Array(array.name, element, tuple(ir.IntConst(extent) for extent in extents), span, slots=slots)
        values = tuple(self._values(declarator, fixed, tuple(extents), items))
        self._enter(declarator, fixed, of_block=False)
        return ir.PrivateArray(fixed, span), values

    def _array(
        self, declarator: syntax.Declarator, element: ScalarType, built: Callable[[syntax.Expression], ir.Expr]
    ) -> ir.Array:
        name, span = declarator.name, declarator.span
        extents: list[ir.Expr] = []
        for extent in declarator.type.extents:
            if extent is None:
                raise self._reporter.refuse("MF0208", span, f"the array `{name}` has no extent")
            extents.append(built(extent))
        self._scopes.check(name, declarator.name_span)
        return ir.Array(self._scopes.fresh(name), element, tuple(extents), span)

    def _enter(self, declarator: syntax.Declarator, array: ir.Array, *, of_block: bool) -> None:
        constant = "const" in declarator.type.qualifiers
        self._scopes.declare_array(declarator.name, ArraySymbol(array, constant, of_block, of_thread=not of_block))

    # --- initialisers -----------------------------------------------------------------------------------------

    def _values(
        self,
        declarator: syntax.Declarator,
        array: ir.Array,
        extents: tuple[int, ...],
        items: Callable[[syntax.Braces, tuple[int, ...]], dict[int, syntax.Expression | ir.Expr]] | None,
    ) -> Iterator[ir.Stmt]:
        if declarator.value is None:
            return
        if declarator.braces is None:
            raise self._reporter.refuse(
                "MF0221",
                declarator.span,
                f"this initialiser of `{declarator.name}` is not understood",
                reason="a thread's array is initialised by values in braces.",
                way_out="assign its elements.",
            )
        given: dict[tuple[int, ...], syntax.Expression | ir.Expr] = {}
        if items is None:
            given |= self._items(declarator.braces, extents, declarator.name)
        else:
            places = list(product(*map(range, extents)))
            given |= {places[number]: item for number, item in items(declarator.braces, extents).items()}
        elements = math.prod(extents)
        if len(given) < elements and elements > MOST_WRITTEN_OUT and not array.slots:
            yield self._zeroed(array, declarator.value.span)
            given = {place: item for place, item in given.items() if not _is_zero(item)}
        elif len(given) < elements:
            zero = syntax.Constant("0", declarator.value.span)
            given = {place: given.get(place, zero) for place in product(*map(range, extents))}
        for place, item in given.items():
            indices = tuple(ir.IntConst(index) for index in place)
            type_ = array.slots[place[-1]].type if array.slots else array.element
            target = ir.Element(array.name, indices, type_, item.span)
            value = self._value(item) if isinstance(item, syntax.Expression) else item
            yield ir.Assign(target, "", value, item.span)

    def _items(
        self, braces: syntax.Braces, extents: tuple[int, ...], name: str
    ) -> dict[tuple[int, ...], syntax.Expression]:
        """Return the values of an initialiser by their places."""
        try:
            return dict(placed(braces, extents, self._number))
        except MisfitError as error:
            raise self._too_many(error.span, name) from None

    def _number(self, index: syntax.Expression) -> int:
        """Return the index of a designator."""
        try:
            return integer_value(self._value(index), {})
        except NoValueError:
            raise MisfitError(index.span) from None

    def _too_many(self, span: Span, name: str) -> Exception:
        return self._reporter.refuse(
            "MF0221",
            span,
            f"these braces do not fit the extents of `{name}`",
            reason="an initialiser has at most as many values as its array has elements.",
            way_out="write a pair of braces for each row.",
        )

    def _zeroed(self, array: ir.Array, span: Span) -> ir.Stmt:
        """Return loops that set every element to 0."""
        names = [self._scopes.fresh("zeroed") for _ in array.extents]
        indices = tuple(ir.Var(name, ir.INT, span) for name in names)
        target = ir.Element(array.name, indices, array.element, span)
        body: ir.Stmt = ir.Assign(target, "", ir.IntConst(0, span=span), span)
        for index, extent in reversed(list(zip(indices, array.extents, strict=True))):
            init = ir.Declare(index.name, ir.INT, ir.IntConst(0), span)
            step = ir.Assign(index, "+", ir.IntConst(1), span)
            body = ir.For(init, ir.binary("<", index, extent), step, (body,), span)
        return body


def _is_zero(item: syntax.Expression | ir.Expr) -> bool:
    return isinstance(item, syntax.Constant) and item.text == "0"
