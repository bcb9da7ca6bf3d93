"""The one way through a program or a kernel: a ``Visitor`` looks at nodes, a ``Rewriter`` makes others of them.

Both call a method named after the node: ``constant``, ``variable``, ``unary``, ``binary``, ``conditional``, ``cast``,
``call``, ``element``; ``declare``, ``assign``, ``branch`` (``If``), ``loop`` (``For``), ``repeat`` (``While``),
``jump`` (``Break``, ``Continue``), ``array`` (``BlockArray``, ``PrivateArray``), ``phase``, ``barrier``.  What a pass
does not define visits the children, in the order in which they are evaluated: a value, then the indices of its target,
then the target; ``init``, condition, body, step.  The extents of arrays and of thread loops are visited too, by
``extent``.

``element`` is called behind the indices and is told its number: elements are counted from 0 in that order
(a pass that uses numbers visits all expressions).

``scope`` is what a pass keeps of where it is.  Each body, loop and phase has its own, which ``inner`` makes of the one
around it: a pass assigns ``self.scope`` as it likes, and behind the body the outer one is back.  ``declared`` is called
where a name comes into scope.

A pass without a method for expressions does not look into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import Any, ClassVar, TypeVar, assert_never

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.node import Node

Body = tuple[ir.Stmt, ...]
N = TypeVar("N", bound=Node)
T = TypeVar("T")

_EXPRESSIONS = {
    ir.IntConst: "constant",
    ir.FloatConst: "constant",
    ir.Var: "variable",
    ir.Unary: "unary",
    ir.Binary: "binary",
    ir.Conditional: "conditional",
    ir.Cast: "cast",
    ir.Call: "call",
    ir.Element: "_element",
}
_STATEMENTS = {
    ir.Declare: "declare",
    ir.Assign: "assign",
    ir.If: "branch",
    ir.For: "loop",
    ir.While: "repeat",
    ir.Break: "jump",
    ir.Continue: "jump",
    ir.BlockArray: "array",
    ir.PrivateArray: "array",
    ir.Phase: "phase",
    ir.Barrier: "barrier",
}


class _Walk:
    """What visitors and rewriters share."""

    scope: Any = None
    elements = 0
    """How many elements there were so far."""
    _methods: ClassVar[dict[type, Callable[..., Any]]]
    _looks: ClassVar[bool]
    """Whether this pass looks into expressions."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._methods = {kind: getattr(cls, name) for kind, name in (_EXPRESSIONS | _STATEMENTS).items()}
        defaults = next(base for base in cls.__mro__ if base in _Walk.__subclasses__())
        names = ("expression", "element", *_EXPRESSIONS.values())
        cls._looks = any(getattr(cls, name) is not getattr(defaults, name) for name in names)

    def inner(self) -> Any:
        """Return the scope of a body, a loop or a phase that begins here."""
        return self.scope

    def declared(self, name: str, node: ir.Declare | ir.BlockArray | ir.PrivateArray | ir.MetaFor) -> None:
        """Take note of a name that is in scope from here on."""


class Visitor(_Walk):
    """Looks at every node."""

    def body(self, body: Body) -> None:
        """Visit the statements of a scope."""
        around, self.scope = self.scope, self.inner()
        for stmt in body:
            self.statement(stmt)
        self.scope = around

    def statement(self, stmt: ir.Stmt) -> None:
        """Visit a statement."""
        self._methods[type(stmt)](self, stmt)

    def expression(self, expr: ir.Expr) -> None:
        """Visit an expression."""
        if self._looks:
            self._methods[type(expr)](self, expr)

    def extent(self, expr: ir.Expr) -> None:
        """Visit an extent of an array or of a thread loop."""
        self.expression(expr)

    def target(self, node: ir.Var | ir.Element) -> None:
        """Visit what is assigned."""
        self.expression(node)

    def _leaf(self, node: Any) -> None:
        pass

    def _operation(self, node: Any) -> None:
        for operand in ir.subexpressions(node):
            self.expression(operand)

    constant = variable = jump = barrier = _leaf
    unary = binary = conditional = cast = call = _operation

    def element(self, node: ir.Element, number: int) -> None:
        """Visit an element; its indices were visited before."""

    def _element(self, node: ir.Element) -> None:
        self._operation(node)
        self.elements += 1
        self.element(node, self.elements - 1)

    def declare(self, node: ir.Declare) -> None:
        """Visit the declaration of a scalar."""
        if node.value is not None:
            self.expression(node.value)
        self.declared(node.name, node)

    def assign(self, node: ir.Assign) -> None:
        """Visit an assignment."""
        self.expression(node.value)
        self.target(node.target)

    def branch(self, node: ir.If) -> None:
        """Visit an ``if``."""
        self.expression(node.condition)
        self.body(node.then)
        self.body(node.otherwise)

    def loop(self, node: ir.For) -> None:
        """Visit a ``for``."""
        around, self.scope = self.scope, self.inner()
        if node.init is not None:
            self.statement(node.init)
        if node.condition is not None:
            self.expression(node.condition)
        self.body(node.body)
        if node.step is not None:
            self.statement(node.step)
        self.scope = around

    def repeat(self, node: ir.While) -> None:
        """Visit a ``while``."""
        self.expression(node.condition)
        self.body(node.body)

    def array(self, node: ir.BlockArray | ir.PrivateArray) -> None:
        """Visit the declaration of an array."""
        for extent in node.array.extents:
            self.extent(extent)
        self.declared(node.array.name, node)

    def phase(self, node: ir.Phase) -> None:
        """Visit a phase."""
        for loop in node.threads:
            self.extent(loop.extent)
        around, self.scope = self.scope, self.inner()
        for loop in node.threads:
            self.declared(loop.var, loop)
        self.body(node.body)
        self.scope = around


class Rewriter(_Walk):
    """Makes a new node of every node: the same object where nothing changes.

    In place of a statement of a body there may be several, or none: a tuple.
    """

    def body(self, body: Body) -> Body:
        """Return the statements of a scope, rewritten."""
        around, self.scope = self.scope, self.inner()
        result: list[ir.Stmt] = []
        for stmt in body:
            new = self.statement(stmt)
            if isinstance(new, tuple):
                result += new
            else:
                result.append(new)
        self.scope = around
        return body if len(result) == len(body) and all(map(is_, result, body)) else tuple(result)

    def statement(self, stmt: ir.Stmt) -> ir.Stmt | Body:
        """Return a statement, rewritten."""
        new: ir.Stmt | Body = self._methods[type(stmt)](self, stmt)
        return new

    def expression(self, expr: ir.Expr) -> ir.Expr:
        """Return an expression, rewritten."""
        if not self._looks:
            return expr
        new: ir.Expr = self._methods[type(expr)](self, expr)
        return new

    def extent(self, expr: ir.Expr) -> ir.Expr:
        """Return an extent of an array or of a thread loop, rewritten."""
        return self.expression(expr)

    def target(self, node: ir.Var | ir.Element) -> ir.Var | ir.Element:
        """Return what is assigned, rewritten."""
        new = self.expression(node)
        assert isinstance(new, ir.Var | ir.Element)
        return new

    def _leaf(self, node: Any) -> Any:
        return node

    def _operation(self, node: Any) -> ir.Expr:
        return with_operands(node, [self.expression(operand) for operand in ir.subexpressions(node)])

    constant = variable = jump = barrier = _leaf
    unary = binary = conditional = cast = call = _operation

    def element(self, node: ir.Element, number: int) -> ir.Expr:
        """Return an element, rewritten; its indices are rewritten already."""
        return node

    def _element(self, node: ir.Element) -> ir.Expr:
        new = self._operation(node)
        assert isinstance(new, ir.Element)
        self.elements += 1
        return self.element(new, self.elements - 1)

    def declare(self, node: ir.Declare) -> ir.Stmt | Body:
        """Return the declaration of a scalar, rewritten."""
        value = None if node.value is None else self.expression(node.value)
        self.declared(node.name, node)
        return node if value is node.value else ir.Declare(node.name, node.type, value, node.span)

    def assign(self, node: ir.Assign) -> ir.Stmt | Body:
        """Return an assignment, rewritten."""
        value = self.expression(node.value)
        return changed(node, value=value, target=self.target(node.target))

    def branch(self, node: ir.If) -> ir.Stmt | Body:
        """Return an ``if``, rewritten."""
        condition = self.expression(node.condition)
        return changed(node, condition=condition, then=self.body(node.then), otherwise=self.body(node.otherwise))

    def loop(self, node: ir.For) -> ir.Stmt | Body:
        """Return a ``for``, rewritten."""
        around, self.scope = self.scope, self.inner()
        init = self._head(node.init)
        condition = None if node.condition is None else self.expression(node.condition)
        body = self.body(node.body)
        step = self._head(node.step)
        self.scope = around
        return changed(node, init=init, condition=condition, body=body, step=step)

    def _head(self, stmt: ir.Declare | ir.Assign | None) -> ir.Declare | ir.Assign | None:
        new = None if stmt is None else self.statement(stmt)
        assert new is None or isinstance(new, ir.Declare | ir.Assign)
        return new

    def repeat(self, node: ir.While) -> ir.Stmt | Body:
        """Return a ``while``, rewritten."""
        return changed(node, condition=self.expression(node.condition), body=self.body(node.body))

    def array(self, node: ir.BlockArray | ir.PrivateArray) -> ir.Stmt | Body:
        """Return the declaration of an array, rewritten."""
        array = changed(node.array, extents=same(map(self.extent, node.array.extents), node.array.extents))
        self.declared(array.name, node)
        return changed(node, array=array)

    def phase(self, node: ir.Phase) -> ir.Stmt | Body:
        """Return a phase, rewritten."""
        threads = same((changed(loop, extent=self.extent(loop.extent)) for loop in node.threads), node.threads)
        around, self.scope = self.scope, self.inner()
        for loop in threads:
            self.declared(loop.var, loop)
        body = self.body(node.body)
        self.scope = around
        return changed(node, threads=threads, body=body)


def changed(node: N, **fields: Any) -> N:
    """Return a node with other fields; itself where they are the same objects."""
    for name, value in fields.items():
        if getattr(node, name) is not value:
            return replace(node, **fields)
    return node


def same(new: Iterable[T], old: tuple[T, ...]) -> tuple[T, ...]:
    """Return a tuple of what is new; the old one where these are the same objects."""
    made = tuple(new)
    return old if all(map(is_, made, old)) else made


def with_operands(expr: ir.Expr, operands: Sequence[ir.Expr]) -> ir.Expr:
    """Return ``expr`` with other direct operands, as many as it has; itself where they are the same objects."""
    old = ir.subexpressions(expr)
    if len(old) != len(operands):
        raise ValueError(f"{len(operands)} operands for {expr}")
    if all(map(is_, operands, old)):
        return expr
    match expr:
        case ir.Binary():
            return ir.Binary(expr.op, operands[0], operands[1], expr.type, expr.span)
        case ir.Element():
            return ir.Element(expr.array, tuple(operands), expr.type, expr.span, expr.part)
        case ir.Cast():
            return ir.Cast(expr.type, operands[0], expr.span)
        case ir.Unary():
            return ir.Unary(expr.op, operands[0], expr.type, expr.span)
        case ir.Call():
            return ir.Call(expr.name, tuple(operands), expr.type, expr.span)
        case ir.Conditional():
            return ir.Conditional(operands[0], operands[1], operands[2], expr.type, expr.span)
        case ir.IntConst() | ir.FloatConst() | ir.Var():
            return expr
        case _:
            assert_never(expr)
