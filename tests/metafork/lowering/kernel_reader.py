"""Reads a kernel written as one C function: the kernel form by hand, for tests, measurements and experiments.

What comes in looks as a kernel is printed, with C's own words for the memories::

    void scale(int n, float alpha, const float *a, float *b)
    {
      extern float tile[blockDim.x];       // SHARED: an array in the dynamic shared memory, packed in order
      float kept[4];                       // PRIVATE: an array of the thread
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      __syncthreads();
      ...
    }

A pointer to ``const`` is a read-only global memory.  The launch (grid, block) is no part of the text
and left at 1.  C's types follow from the declarations, by the rules of ``metafork.ir.arithmetic.types``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pycparser import c_ast, c_parser

from metafork.ir.arithmetic.math_functions import SIGNATURES
from metafork.ir.arithmetic.types import ScalarType, common_type
from metafork.ir.kernel import Argument, Kernel, Memory, Space
from metafork.ir.program import (
    Assign,
    Barrier,
    Break,
    Call,
    Cast,
    Conditional,
    Continue,
    Declare,
    Element,
    Expr,
    FloatConst,
    For,
    If,
    IntConst,
    Stmt,
    Var,
    While,
    binary,
    unary,
)

_BY_WORDS = {tuple(sorted(type_.spelling.split())): type_ for type_ in ScalarType}
_BY_WORDS[("unsigned",)] = ScalarType.UNSIGNED_INT
_BY_WORDS[tuple(sorted(("unsigned", "long", "int")))] = ScalarType.UNSIGNED_LONG
_BY_SUFFIX = {
    "": ScalarType.INT,
    "u": ScalarType.UNSIGNED_INT,
    "l": ScalarType.LONG,
    "ul": ScalarType.UNSIGNED_LONG,
    "ll": ScalarType.LONG_LONG,
    "ull": ScalarType.UNSIGNED_LONG_LONG,
}
ONE = IntConst(1)


class NotAKernel(Exception):  # noqa: N818 - named for what the text is
    """The text uses something that the kernel form does not have; the message names it."""


def read_kernels(text: str) -> tuple[Kernel, ...]:
    """Return the kernel of each C function of ``text``; raises ``NotAKernel``.

    Syntax errors are pycparser's own exceptions.
    """
    without_comments = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    unit = c_parser.CParser().parse(without_comments)
    return tuple(_Reader().kernel(part) for part in unit.ext if isinstance(part, c_ast.FuncDef))


def read_kernel(text: str) -> Kernel:
    """Return the one kernel of ``text``; raises ``NotAKernel`` where there are none or several."""
    kernels = read_kernels(text)
    if len(kernels) != 1:
        raise NotAKernel("the text must define exactly one function")
    return kernels[0]


@dataclass(slots=True)
class _Reader:
    scopes: list[dict[str, ScalarType]] = field(default_factory=lambda: [{}])
    memories: dict[str, Memory] = field(default_factory=dict)
    shared_bytes: Expr = field(default_factory=lambda: IntConst(0, ScalarType.LONG))

    def kernel(self, node: Any) -> Kernel:
        scalars = []
        for parameter in node.decl.type.args.params if node.decl.type.args else ():
            if isinstance(parameter.type, c_ast.PtrDecl):
                element = self.scalar_type(parameter.type.type)
                read_only = "const" in parameter.type.type.quals
                extent = IntConst(0, ScalarType.LONG)
                self.memories[parameter.name] = Memory(
                    parameter.name, Space.GLOBAL, element, extent, read_only=read_only
                )
            else:
                type_ = self.scalar_type(parameter.type)
                self.scopes[0][parameter.name] = type_
                scalars.append(Argument(parameter.name, type_))
        body = self.statements(node.body)
        memories = tuple(self.memories.values())
        unit = (ONE, ONE, ONE)
        return Kernel(node.decl.name, tuple(scalars), memories, body, unit, unit, self.shared_bytes)

    def scalar_type(self, node: Any) -> ScalarType:
        words = tuple(sorted(node.type.names)) if isinstance(node.type, c_ast.IdentifierType) else ()
        if words not in _BY_WORDS:
            raise NotAKernel(f"type {' '.join(words) or type(node.type).__name__}")
        return _BY_WORDS[words]

    def statements(self, node: Any) -> tuple[Stmt, ...]:
        self.scopes.append({})
        items = (node.block_items or ()) if isinstance(node, c_ast.Compound) else (node,) if node is not None else ()
        body = tuple(stmt for item in items for stmt in self.statement(item))
        self.scopes.pop()
        return body

    def statement(self, node: Any) -> tuple[Stmt, ...]:
        match node:
            case c_ast.Compound():
                raise NotAKernel("a block that is no body")
            case c_ast.EmptyStatement():
                return ()
            case c_ast.Decl(type=c_ast.ArrayDecl()):
                self.array(node)
                return ()
            case c_ast.Decl() | c_ast.Assignment() | c_ast.UnaryOp():
                return (self.simple(node),)
            case c_ast.If():
                condition = self.expr(node.cond)
                return (If(condition, self.statements(node.iftrue), self.statements(node.iffalse)),)
            case c_ast.For():
                return (self.loop(node),)
            case c_ast.While():
                return (While(self.expr(node.cond), self.statements(node.stmt)),)
            case c_ast.Break():
                return (Break(),)
            case c_ast.Continue():
                return (Continue(),)
            case c_ast.FuncCall(name=c_ast.ID(name="__syncthreads")):
                return (Barrier(),)
            case _:
                raise NotAKernel(type(node).__name__)

    def loop(self, node: Any) -> For:
        self.scopes.append({})
        first = node.init.decls[0] if isinstance(node.init, c_ast.DeclList) else node.init
        init = None if first is None else self.simple(first)
        condition = None if node.cond is None else self.expr(node.cond)
        step = None if node.next is None else self.simple(node.next)
        if isinstance(step, Declare):
            raise NotAKernel("a declaration in a loop's step")
        body = self.statements(node.stmt)
        self.scopes.pop()
        return For(init, condition, step, body)

    def array(self, node: Any) -> None:
        element, extent = self.scalar_type(node.type.type), self.expr(node.type.dim)
        if "extern" not in node.storage:
            self.memories[node.name] = Memory(node.name, Space.PRIVATE, element, extent)
            return
        unit = IntConst(element.size, ScalarType.LONG)
        beyond = IntConst(element.size - 1, ScalarType.LONG)
        offset, size = self.shared_bytes, binary("*", extent, unit)
        if isinstance(offset, IntConst):
            self.shared_bytes = size
        else:
            # Round up to the element's own alignment.
            offset = binary("*", binary("/", binary("+", offset, beyond), unit), unit)
            self.shared_bytes = binary("+", offset, size)
        self.memories[node.name] = Memory(node.name, Space.SHARED, element, extent, offset)

    def simple(self, node: Any) -> Declare | Assign:
        match node:
            case c_ast.Decl():
                type_ = self.scalar_type(node.type)
                value = None if node.init is None else self.expr(node.init)
                self.scopes[-1][node.name] = type_
                return Declare(node.name, type_, value)
            case c_ast.Assignment():
                return Assign(self.target(node.lvalue), node.op[:-1], self.expr(node.rvalue))
            case c_ast.UnaryOp(op="p++" | "++" | "p--" | "--"):
                return Assign(self.target(node.expr), node.op[-1], ONE)
            case _:
                raise NotAKernel(type(node).__name__)

    def target(self, node: Any) -> Var | Element:
        target = self.expr(node)
        if not isinstance(target, (Var, Element)):
            raise NotAKernel("an assignment to something that is no variable and no element")
        return target

    def expr(self, node: Any) -> Expr:
        match node:
            case c_ast.Constant():
                return _constant(node)
            case c_ast.ID(name=name):
                return Var(name, self.type_of(name))
            case c_ast.StructRef():
                return Var(f"{node.name.name}.{node.field.name}", ScalarType.UNSIGNED_INT)
            case c_ast.UnaryOp(op="-" | "+" | "!" | "~"):
                return unary(node.op, self.expr(node.expr))
            case c_ast.BinaryOp():
                return binary(node.op, self.expr(node.left), self.expr(node.right))
            case c_ast.TernaryOp():
                then, otherwise = self.expr(node.iftrue), self.expr(node.iffalse)
                return Conditional(self.expr(node.cond), then, otherwise, common_type(then.type, otherwise.type))
            case c_ast.Cast():
                return Cast(self.scalar_type(node.to_type.type), self.expr(node.expr))
            case c_ast.ArrayRef():
                name = node.name.name
                if name not in self.memories:
                    raise NotAKernel(f"array {name}")
                return Element(name, (self.expr(node.subscript),), self.memories[name].element)
            case c_ast.FuncCall():
                name = node.name.name
                if name not in SIGNATURES:
                    raise NotAKernel(f"function {name}")
                arguments = tuple(self.expr(argument) for argument in node.args.exprs)
                return Call(name, arguments, SIGNATURES[name].result)
            case _:
                raise NotAKernel(type(node).__name__)

    def type_of(self, name: str) -> ScalarType:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise NotAKernel(f"variable {name}")


def _constant(node: Any) -> IntConst | FloatConst:
    if node.type in ("float", "double"):
        return FloatConst(node.value, ScalarType.FLOAT if node.value[-1] in "fF" else ScalarType.DOUBLE)
    digits = node.value.rstrip("uUlL")
    suffix = node.value[len(digits) :].lower()
    value = int(digits, 0) if not re.fullmatch(r"0[0-7]+", digits) else int(digits, 8)
    type_ = _BY_SUFFIX["ull" if suffix == "llu" else "ul" if suffix == "lu" else suffix]
    if type_ is ScalarType.INT and value > 0x7FFFFFFF:
        type_ = ScalarType.LONG
    return IntConst(value, type_)
