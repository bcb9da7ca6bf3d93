"""Small floating-point numbers in memory, ``half`` and ``bfloat16``: bits, which are converted where they are used.

``before --> after``, of arrays and variables of type ``half``::

    y[i] = a * x[i];    -->    y[i] = metafork_to_half(a * metafork_from_half(x[i]));
    y[i] += x[i];       -->    y[i] = metafork_to_half(metafork_from_half(y[i]) + metafork_from_half(x[i]));
    y[i] = x[i];        -->    y[i] = x[i];

Behind this, elements are integers of two bytes: nothing else of the compiler knows these types.
"""

from __future__ import annotations

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.math_functions import SMALL_FLOATS
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.visitor import Rewriter, changed


def with_stored_bits(program: ir.Program) -> ir.Program:
    """Return a program without small floating types."""
    arrays = tuple(_stored(array) for array in program.arrays)
    return replace(program, arrays=arrays, body=_Storing().body(program.body))


def _stored(array: ir.Array) -> ir.Array:
    return replace(array, element=array.element.stored, small=True) if array.element.small else array


def _value(place: ir.Var | ir.Element) -> ir.Expr:
    """Return what a place of a small type holds, as a ``float``."""
    read, _ = SMALL_FLOATS[place.type]
    return ir.Call(read, (replace(place, type=place.type.stored),), ScalarType.FLOAT, place.span)


def _bits(value: ir.Expr, type_: ScalarType) -> ir.Expr:
    """Return the bits of the number of a small type that is nearest to a value."""
    read, rounded = SMALL_FLOATS[type_]
    if isinstance(value, ir.Call) and value.name == read:
        return value.arguments[0]
    given = value if value.type is ScalarType.FLOAT else ir.Cast(ScalarType.FLOAT, value, value.span)
    return ir.Call(rounded, (given,), type_.stored, value.span)


class _Storing(Rewriter):
    def variable(self, node: ir.Var) -> ir.Expr:
        return _value(node) if node.type.small else node

    def element(self, node: ir.Element, number: int) -> ir.Expr:
        return _value(node) if node.type.small else node

    def cast(self, node: ir.Cast) -> ir.Expr:
        value = self.expression(node.operand)
        if not node.type.small:
            return changed(node, operand=value)
        read, _ = SMALL_FLOATS[node.type]
        return ir.Call(read, (_bits(value, node.type),), ScalarType.FLOAT, node.span)

    def call(self, node: ir.Call) -> ir.Expr:
        """Return a call; the bits of what has just been read are what was read, of any NaN too."""
        new = self._operation(node)
        read = next((reads for reads, rounded in SMALL_FLOATS.values() if rounded == node.name), None)
        (given, *_) = ir.subexpressions(new) or (None,)
        return given.arguments[0] if read and isinstance(given, ir.Call) and given.name == read else new

    def declare(self, node: ir.Declare) -> ir.Declare:
        value = None if node.value is None else self.expression(node.value)
        if not node.type.small:
            return changed(node, value=value)
        return replace(node, type=node.type.stored, value=None if value is None else _bits(value, node.type))

    def assign(self, node: ir.Assign) -> ir.Assign:
        value, type_ = self.expression(node.value), node.target.type
        held = self.expression(node.target)
        if not type_.small:
            assert isinstance(held, ir.Var | ir.Element)
            return changed(node, value=value, target=held)
        total = ir.binary(node.op, held, value, node.span) if node.op else value
        assert isinstance(held, ir.Call)
        (target,) = held.arguments
        assert isinstance(target, ir.Var | ir.Element)
        return replace(node, target=target, op="", value=_bits(total, type_))

    def array(self, node: ir.BlockArray | ir.PrivateArray) -> ir.BlockArray | ir.PrivateArray:
        return replace(node, array=_stored(node.array)) if node.array.element.small else node
