"""C statements of programs and kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard, assert_never

from msgspec.structs import replace

from metafork.ir import program as ir
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.kernel import made_of_offsets
from metafork.printing.expressions import PLAIN_C, Spelling, converted, expression, truth
from metafork.printing.input_lines import line_of, marker

_HINTS = {ir.ROLLED: "METAFORK_ROLLED", ir.WHOLE: "METAFORK_UNROLLED"}


def assignment(stmt: ir.Assign, spelling: Spelling = PLAIN_C) -> str:
    """Return an assignment without its semicolon."""
    target = expression(stmt.target, spelling)
    if stmt.atomic and (call := spelling.atomic(stmt)) is not None:
        return call
    if stmt.asynchronous and spelling.cplusplus:
        return f"metafork_copy<1>(&{target}, &{expression(stmt.value, spelling)})"
    if stmt.op in ("min", "max"):
        value = converted(stmt.value, stmt.target.type, spelling)
        ends = f"{target} < ({value})" if stmt.op == "max" else f"({value}) < {target}"
        return f"meta_atomic {target} = {ends} ? ({value}) : {target}"
    mark = "meta_atomic " if stmt.atomic else ""
    return f"{mark}{target} {stmt.op}= {converted(stmt.value, stmt.target.type, spelling)}"


def declaration(stmt: ir.Declare, spelling: Spelling = PLAIN_C) -> str:
    """Return a declaration without its semicolon."""
    in_offsets = spelling.cplusplus and stmt.type is ScalarType.LONG_LONG and made_of_offsets(stmt.value)
    text = f"{'METAFORK_OFFSET_TYPE' if in_offsets else spelling.type(stmt.type)} {spelling.name(stmt.name)}"
    if spelling.cplusplus and id(stmt) in spelling.unread:
        text = f"[[maybe_unused]] {text}"
    return text if stmt.value is None else f"{text} = {converted(stmt.value, stmt.type, spelling)}"


def array_declaration(array: ir.Array, spelling: Spelling = PLAIN_C) -> str:
    """Return ``float a[n][m]``; a pointer, to rows perhaps, where it is not known how many elements there are."""
    extents = "".join(f"[{expression(extent, spelling)}]" for extent in array.extents[array.endless :])
    name = f"*{spelling.name(array.name)}" if array.endless else spelling.name(array.name)
    name = f"({name})" if array.endless and extents else name
    return f"{spelling.type(array.element)} {name}{extents}"


def thread_loop(loop: ir.MetaFor, spelling: Spelling = PLAIN_C) -> str:
    """Return the head of a ``meta_for``."""
    name = spelling.name(loop.var)
    limit = expression(binary_limit(loop), spelling)
    return f"meta_for ({spelling.type(loop.type)} {name} = 0; {limit}; {name}++)"


def binary_limit(loop: ir.MetaFor) -> ir.Binary:
    """Return ``var < extent``, the condition of a ``meta_for``."""
    return ir.Binary("<", ir.Var(loop.var, loop.type), loop.extent, ScalarType.INT)


def step(stmt: ir.Assign, spelling: Spelling = PLAIN_C) -> str:
    """Return the step of a loop: ``i++`` and ``i--`` where they say the same (C++ has no increment of ``bool``)."""
    target, value = stmt.target, stmt.value
    if (
        stmt.op in ("+", "-")
        and isinstance(value, ir.IntConst)
        and value.value == 1
        and target.type.integer
        and target.type is not ScalarType.BOOL
    ):
        return expression(target, spelling) + stmt.op * 2
    return assignment(stmt, spelling)


def _loop_head(loop: ir.For, spelling: Spelling) -> str:
    match loop.init:
        case ir.Declare():
            first = declaration(loop.init, spelling)
        case ir.Assign():
            first = assignment(loop.init, spelling)
        case None:
            first = ""
        case _:
            assert_never(loop.init)
    second = "" if loop.condition is None else " " + truth(loop.condition, spelling)
    third = "" if loop.step is None else " " + step(loop.step, spelling)
    return f"for ({first};{second};{third})"


def statements(body: tuple[ir.Stmt, ...], indent: int, spelling: Spelling = PLAIN_C) -> list[str]:
    """Return the lines of a body; ``indent`` counts spaces.  Bodies of ``if`` and loops always stand in braces."""
    lines: list[str] = []
    position = 0
    while position < len(body):
        if id(body[position]) in spelling.steps:
            lines.append(f"{' ' * indent}/* {spelling.steps[id(body[position])]} */")
        if spelling.line is not None:
            lines.append(marker(line_of(body, position, spelling.line)))
        together = _together(body, position) if spelling.cplusplus else 1
        if together > 1:
            lines += [f"{' ' * indent}{line}" for line in _vector(body[position : position + together], spelling)]
        else:
            lines += statement(body[position], indent, spelling)
        position += together
    return lines


def _part(stmt: ir.Stmt) -> tuple[ir.Element, ir.Part, bool] | None:
    """Return the element that a statement only reads or writes as a part of an access, which part, and if it reads."""
    match stmt:
        case ir.Declare(value=ir.Element(part=ir.Part() as part) as element, type=type_) if element.type is type_:
            return element, part, True
        case ir.Assign(target=ir.Element(part=ir.Part() as part) as element, op="", atomic=False):
            return element, part, False
        case ir.Assign(target=target, value=ir.Element(part=ir.Part() as part) as element, op="", atomic=False) if (
            element.type is target.type
        ):
            return element, part, True
        case _:
            return None


def _together(body: tuple[ir.Stmt, ...], position: int) -> int:
    """Return how many statements from a position on are one access: all parts of it, one after the other."""
    begin = _part(body[position])
    if begin is None:
        return 1
    first, whole, reads = begin
    several = body[position : position + whole.lanes]
    for number, stmt in enumerate(several):
        found = _part(stmt)
        if found is None or (found[0].array, *found[1:]) != (first.array, replace(whole, place=number), reads):
            return 1
    return whole.lanes if len(several) == whole.lanes else 1


def _vector(several: Sequence[ir.Stmt], spelling: Spelling) -> Iterator[str]:
    """Yield the lines of statements that are one access."""
    begin = _part(several[0])
    assert begin is not None
    element, part, reads = begin
    place = expression(element, spelling)
    if reads:
        declared = [stmt for stmt in several if isinstance(stmt, ir.Declare)]
        if declared:
            names = ", ".join(spelling.name(stmt.name) for stmt in declared)
            mark = "[[maybe_unused]] " if any(id(stmt) in spelling.unread for stmt in declared) else ""
            yield f"{mark}{spelling.type(element.type)} {names};"
        targets = (ir.Var(s.name, s.type) if isinstance(s, ir.Declare) else s.target for s in several if _assigns(s))
        yield f"metafork_load(&{place}, {', '.join(expression(one, spelling) for one in targets)});"
    elif (source := _moved(several)) is not None:
        assert isinstance(several[0], ir.Assign)
        how = "metafork_copy" if several[0].asynchronous else "metafork_move"
        yield f"{how}<{part.lanes}>(&{place}, &{expression(source, spelling)});"
    else:
        of_type = spelling.type(element.type)
        values = ", ".join(f"({of_type})({expression(s.value, spelling)})" for s in several if isinstance(s, ir.Assign))
        yield f"metafork_store(&{place}, {values});"


def _assigns(stmt: ir.Stmt) -> TypeGuard[ir.Declare | ir.Assign]:
    return isinstance(stmt, ir.Declare | ir.Assign)


def _moved(several: Sequence[ir.Stmt]) -> ir.Element | None:
    """Return the first of the elements that are copied to others as one access, ``None`` where other values are."""
    values = [stmt.value for stmt in several if isinstance(stmt, ir.Assign)]
    first = values[0]
    if not isinstance(first, ir.Element) or first.part is None:
        return None
    for number, (value, stmt) in enumerate(zip(values, several, strict=True)):
        whole = ir.Part(len(several), number)
        if not (isinstance(value, ir.Element) and (value.array, value.part) == (first.array, whole)):
            return None
        assert isinstance(stmt, ir.Assign)
        if stmt.target.type is not value.type or stmt.asynchronous != getattr(several[0], "asynchronous", None):
            return None
    return first


def _braced(head: str, body: tuple[ir.Stmt, ...], indent: int, spelling: Spelling) -> list[str]:
    margin = " " * indent
    return [f"{margin}{head} {{", *statements(body, indent + 2, spelling), f"{margin}}}"]


def statement(stmt: ir.Stmt, indent: int, spelling: Spelling = PLAIN_C) -> list[str]:
    """Return the lines of one statement."""
    margin = " " * indent
    match stmt:
        case ir.Declare():
            return [f"{margin}{declaration(stmt, spelling)};"]
        case ir.Assign():
            return [f"{margin}{assignment(stmt, spelling)};"]
        case ir.If(condition=condition, then=then, otherwise=otherwise):
            lines = _braced(f"if ({truth(condition, spelling)})", then, indent, spelling)
            if otherwise:
                rest = _braced("else", otherwise, indent, spelling)
                if len(otherwise) == 1 and isinstance(otherwise[0], ir.If):
                    rest = statement(otherwise[0], indent, spelling)
                    rest[0] = f"{margin}else {rest[0].lstrip()}"
                lines[-1] += f" {rest[0].lstrip()}"
                lines += rest[1:]
            return lines
        case ir.For(body=inner, copies=copies):
            lines = _braced(_loop_head(stmt, spelling), inner, indent, spelling)
            hint = _HINTS.get(copies, f"METAFORK_UNROLLED_BY({copies})")
            return [f"{margin}{hint}", *lines] if copies else lines
        case ir.While(condition=condition, body=inner):
            return _braced(f"while ({truth(condition, spelling)})", inner, indent, spelling)
        case ir.Break():
            return [f"{margin}break;"]
        case ir.Continue():
            return [f"{margin}continue;"]
        case ir.BlockArray(array=array) | ir.PrivateArray(array=array):
            return [f"{margin}{array_declaration(array, spelling)};"]
        case ir.Phase(threads=threads, body=inner):
            lines = []
            for depth, loop in enumerate(threads):
                brace = " {" if depth == len(threads) - 1 else ""
                lines.append(f"{' ' * (indent + 2 * depth)}{thread_loop(loop, spelling)}{brace}")
            last = indent + 2 * (len(threads) - 1)
            return [*lines, *statements(inner, last + 2, spelling), f"{' ' * last}}}"]
        case ir.Barrier(awaits=awaits):
            waiting = [f"{margin}metafork_await_copies();"] if awaits and spelling.cplusplus else []
            return [*waiting, f"{margin}{spelling.barrier};"]
        case _:
            assert_never(stmt)
