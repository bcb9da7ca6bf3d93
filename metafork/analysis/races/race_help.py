"""What to do about a race: the lines of the text as they should be, where it is known what was meant.

What many threads add to one element is added up by one thread (the loop becomes a ``for``), by a reduction or
atomically.  What is read from the array that is written is read from another.  Else the two accesses are put apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from textwrap import dedent, indent

from msgspec import Struct
from msgspec.structs import replace

from metafork.analysis.races.proof import RaceKind
from metafork.analysis.references import Reference
from metafork.ir.atomic_updates import may_update
from metafork.ir.messages.source import Span
from metafork.ir.program import Assign, Binary, Element, If, Program, walk_statements
from metafork.ir.translation_unit import Function, Schedule

_LOOP = re.compile(r"\bmeta_for\s*\([^;=()]*?\b(\w+)\s*=")
_BLOCK = re.compile(r"\bmeta_block\s*\(")
_NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*", re.DOTALL | re.MULTILINE)
_MOST_LINES = 12
_REDUCED = ("+", "*", "&", "|", "^")


class _Loop(Struct, frozen=True):
    """A ``meta_for`` of the text: its variable, and where its keyword begins."""

    variable: str
    start: int

    @property
    def names(self) -> re.Pattern[str]:
        """What its variables are called in a program, where the front end cuts it into blocks."""
        return re.compile(rf"{self.variable}(?:_(?:block|thread|number))?(?:_\d+)?")


class RaceHelp:
    """Finds what to do about races of one schedule; ``words`` are all names of the file."""

    def __init__(self, text: str, schedule: Schedule, function: Function, words: Set[str]) -> None:
        self._text = text
        self._program: Program = schedule.program
        self._function = function
        self._words = words
        self._span = schedule.span
        self._in_text = not schedule.hidden

    @cached_property
    def _code(self) -> str:
        """The text to the end of the schedule, with blanks for comments."""
        return _NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), self._text[: self._span.end])

    @cached_property
    def _loops(self) -> list[_Loop]:
        """The ``meta_for``s of the schedule, in the order of the text."""
        return [_Loop(found[1], found.start()) for found in _LOOP.finditer(self._code, self._span.start)]

    def statement(self, access: Reference) -> Assign | None:
        """Return the assignment that an access is in."""
        place = access.element.span
        every = [one for one in walk_statements(self._program.body) if isinstance(one, Assign)]
        around = [one for one in every if one.span.start <= place.start and place.end <= one.span.end]
        return min(around, key=lambda one: one.span.end - one.span.start, default=None)

    def updated(self, first: Reference, second: Reference) -> Assign | None:
        """Return the update (``x[i] += 1``, ``x[i] = x[i] + 1``) that two accesses are, with its operator."""
        found = self.statement(first)
        if found is None or found != self.statement(second) or found.atomic:
            return None
        if first.element != found.target or second.element != found.target:
            return None
        match found:
            case Assign(op="", target=target, value=Binary(op=op, left=left, right=right)) if op in _REDUCED:
                return replace(found, op=op) if target in (left, right) else None
            case _:
                return found if found.op else None

    def greatest(self, first: Reference, second: Reference) -> Iterator[str]:
        """Yield how the greatest or least of all values is said: ``if (x[i] > m[0]) m[0] = x[i];``."""
        around = self._around(first)
        if not around or self._repeated(first, second) != around:
            return
        for one in walk_statements(self._program.body):
            match one:
                case If(
                    condition=Binary(op="<" | "<=" | ">" | ">=" as op, left=left, right=right),
                    then=(Assign(op="", target=target, value=value),),
                    otherwise=(),
                ) if (value, target) in ((left, right), (right, left)) and target == first.element == second.element:
                    word = "max" if (op in (">", ">=")) == (left == value) else "min"
                    yield self._reduction(word, first)
                case _:
                    pass

    def of(self, kind: RaceKind, first: Reference, second: Reference) -> str:
        """Return what to do; several ways are lines that begin with ``or``."""
        update = self.updated(first, second)
        repeated = self._repeated(first, second)
        ways: list[str] = []
        if repeated:
            ways += self._in_one_thread(repeated, first, update)
        if update is not None:
            ways += self.atomically(update)
        if not ways:
            ways += self._from_another_array(first, second)
        if not ways and self.statement(first) != self.statement(second):
            ways.append(_APART[kind])
        if not ways and first.writes != second.writes:
            ways.append("make the loop a `for`, or read one array and write another.")
        return "\nor ".join(ways) or "let every iteration write an element of its own."

    def repeated(self, first: Reference, second: Reference) -> tuple[str, ...]:
        """Return the variables of ``meta_for``s whose iterations all touch the same element."""
        return tuple(loop.variable for loop in self._repeated(first, second))

    def atomically(self, update: Assign) -> Iterator[str]:
        """Yield how to make an update atomic."""
        target = update.target
        if isinstance(target, Element) and update.op in (*_REDUCED, "-") and may_update(target.type, update.op):
            written = self._written(update.span).rstrip(";").strip() if self._in_text else ""
            allowed = ", and allow any order of additions (`--reassociate`)" if target.type.floating else ""
            way = f"make the update atomic{allowed}"
            yield f"{way}: `meta_atomic {written};`" if written else f"{way}."

    # --- pieces -----------------------------------------------------------------------------------------------

    def _written(self, span: Span) -> str:
        return " ".join(self._text[span.start : span.end].split())

    def _around(self, access: Reference) -> list[_Loop]:
        """Return the ``meta_for``s of the text around an access, outermost first."""
        if not self._in_text or not self._span.start <= access.element.span.start < self._span.end:
            return []
        variables = [loop.var for loop in access.loops]
        before = (loop for loop in self._loops if loop.start < access.element.span.start)
        around = {loop.variable: loop for loop in before if any(map(loop.names.fullmatch, variables))}
        return sorted(around.values(), key=lambda loop: loop.start)

    def _repeated(self, first: Reference, second: Reference) -> list[_Loop]:
        symbols: set[str] = set()
        for access in (first, second):
            for index in access.indices:
                if index is None:
                    return []
                symbols |= index.symbols
        if first.element != second.element:
            return []
        return [loop for loop in self._around(first) if not any(map(loop.names.fullmatch, symbols))]

    def _in_one_thread(self, repeated: Sequence[_Loop], access: Reference, update: Assign | None) -> Iterator[str]:
        each = self._around(access)
        if len(repeated) == len(each):
            if update is not None and update.op in _REDUCED:
                yield self._reduction(update.op, access)
            return
        if len(each) < len(self._loops):
            return  # several nests of thread loops, which must have the same number of loops
        names = " and ".join(f"`{loop.variable}`" for loop in repeated)
        if each[-len(repeated) :] != list(repeated):
            yield f"make the loop over {names} a `for`, inside of the other loops."
            return
        left = len(each) - len(repeated)
        what = "the loops" if len(repeated) > 1 else "the loop"
        message = f"make {what} over {names} a `for`"
        then = f". Each thread then adds up an element of `{access.array}`" if update is not None else ""
        note, lines = self._as_for(repeated, left, access)
        yield f"{message}{note}{then}:\n{lines}" if lines else f"{message}{then}."

    def _reduction(self, op: str, access: Reference) -> str:
        allowed = ", and allow another order: `--reassociate`" if access.element.type.floating else ""
        start = self._around(access)[0].start
        head = self._text[start : self._end_of_line(start)].strip()
        clause = f"meta_reduction({op}: {access.array})"
        return f"say that it is a reduction, in front of the loop{allowed}:\n  {clause}\n  {head}"

    def _as_for(self, repeated: Sequence[_Loop], left: int, access: Reference) -> tuple[str, str]:
        """Return the text with a ``for`` in place of some loops, and what else is new; ``""`` if it is not known."""
        start, end = self._loops[0].start, self._end_of_line(access.element.span.end)
        head = self._code[self._span.start : start]
        block = _BLOCK.search(head)
        changes = [(loop.start, loop.start + len("meta_for"), "for") for loop in repeated]
        note = ""
        sizes = head[block.end() : head.find(")", block.end())].split(",") if block else []
        if block is not None and len(sizes) > left:
            at = self._span.start + block.end()
            changes.append((at, at + len(",".join(sizes)), ",".join(sizes[:left])))
            start, end = self._span.start, self._span.end
        elif block is None and left == 1:
            name = next(one for one in ("B", "BLOCK", "BLOCK_SIZE", "") if one not in self._words)
            if not name or "meta_grid" in head:
                return "", ""
            at = self._span.start + len("meta_schedule")
            changes.append((at, at, f" meta_block({name})"))
            start, end = self._span.start, self._span.end
            note = f", and cut the outer loop into blocks. The block size is a parameter, `int {name}`"
        elif block is None and (left % 2 or "meta_grid" in head):
            return "", ""
        short = self._text[start:end].count("\n") < _MOST_LINES
        return (note, self._changed(start, end, changes)) if short else ("", "")

    def _changed(self, start: int, end: int, changes: Sequence[tuple[int, int, str]]) -> str:
        """Return whole lines of the text with some places changed, indented alike."""
        begin = self._text.rfind("\n", 0, start) + 1
        shown, here = "", begin
        for first, behind, text in sorted(changes):
            shown += self._text[here:first] + text
            here = behind
        return indent(dedent(shown + self._text[here:end]), "  ").rstrip()

    def _end_of_line(self, place: int) -> int:
        end = self._text.find("\n", place)
        return len(self._text) if end < 0 else end

    def _from_another_array(self, first: Reference, second: Reference) -> Iterator[str]:
        """Yield how an assignment writes another array than the one it reads."""
        assigned = self.statement(first)
        if assigned is None or assigned != self.statement(second) or assigned.op or not self._in_text:
            return
        if first.writes == second.writes or not isinstance(assigned.target, Element):
            return
        name, place = first.array, assigned.target.span
        element = self._text[place.start : place.end]
        if re.match(rf"{name}\b", element) is None:
            return
        other = next((one for one in (f"{name}_new", f"{name}_next", f"{name}_out") if one not in self._words), None)
        if other is None:
            return
        declared = self._declaration(name)
        statement = f"{other}{element[len(name) :]}{self._text[place.end : assigned.span.end]}".rstrip(";") + ";"
        copied = re.sub(rf"\b{name}\b", other, declared, count=1)
        lines = [f"{declared}, {copied}"] if declared else []
        message = "read one array and write another" + ("" if declared else f", declared like `{name}`")
        yield "\n  ".join([f"{message}:", *lines, " ".join(statement.split())])

    def _declaration(self, name: str) -> str:
        """Return the declaration of a parameter of the function, ``""`` where it is none."""
        array = next((one for one in self._program.arrays if one.name == name), None)
        place = -1 if array is None else array.span.start
        if not self._function.span.start <= place < self._function.body.start:
            return ""
        depth, end = 0, place
        while end < self._function.body.start and (depth or self._text[end] not in ",)"):
            depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(self._text[end], 0)
            end += 1
        begin = max(self._text.rfind(",", 0, place), self._text.rfind("(", 0, place)) + 1
        return " ".join(self._text[begin:end].split())


_APART = {
    RaceKind.GRID: "put the two accesses into two schedules. All blocks of the first end before the second begins.",
    RaceKind.THREADS: "put the two accesses into two nests of thread loops. All threads of a block end the first "
    "before the second begins.",
}
