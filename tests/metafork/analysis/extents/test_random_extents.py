"""Extents that are stated of pointers, against what random serial functions touch: none too large, none too small."""

import itertools
import random
import re
from dataclasses import dataclass, field

import pytest

from metafork.analysis.facts import program_facts
from metafork.comprehensive.reading import parse
from metafork.ir.messages.source import Source
from metafork.printing.expressions import expression

PARAMETERS = ("n", "m", "k", "B")
POINTERS = ("x", "y", "z")
CONSTANTS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 20, 25, 31, 50, 64, 100, 128, 1000, 1024, 4096, 65536, 1000000)
MOST_ITERATIONS = 40_000
LAUNCHES = 14


def quotient(left, right):
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def remainder(left, right):
    return left - right * quotient(left, right)


class TooLongError(Exception):
    """A launch has too many iterations to be played."""


class Play:
    """What one launch touches: the least and the greatest index of each pointer."""

    def __init__(self, flags):
        self.least, self.greatest, self.left, self.flags = {}, {}, MOST_ITERATIONS, flags

    def touch(self, pointer, index):
        self.least[pointer] = min(index, self.least.get(pointer, index))
        self.greatest[pointer] = max(index, self.greatest.get(pointer, index))

    def round(self):
        self.left -= 1
        if self.left < 0:
            raise TooLongError

    def flag(self, index):
        return self.flags(index)


@dataclass
class Writer:
    """Writes a function twice: as C, and as Python that plays it.  ``inner`` are variables that are not below 0."""

    numbers: random.Random
    c: list = field(default_factory=list)
    py: list = field(default_factory=list)
    inner: list = field(default_factory=list)
    fresh: itertools.count = field(default_factory=itertools.count)

    def line(self, depth, c, py):
        self.c.append("  " * depth + c)
        self.py.extend(["  " * depth + one for one in ([py] if isinstance(py, str) else py)])

    def pick(self, *choices):
        return self.numbers.choice(choices)

    def constant(self):
        return self.numbers.choice(CONSTANTS[: self.pick(6, 10, 16, len(CONSTANTS))])

    def size(self):
        """An expression in parameters, not below 0 for most."""
        name, other, number = self.pick("n", "m", "k"), self.pick("n", "m", "k"), self.constant()
        return self.pick(
            name, name, name, f"{name} + {number}", f"{name} * {other}", f"{name} - {self.pick(1, 2)}", str(number + 1)
        )

    def value(self):
        """An index, as C and Python."""
        v, w, number = self.pick(*self.inner), self.pick(*self.inner), self.constant()
        size = self.pick("n", "m", "k")
        plain = self.pick(
            *(v, v, v, v, f"{v} + {number}", f"{v} - {number}", f"{v} + {w}", f"{v} * {size} + {w}"),
            *(f"2 * {v} + {self.pick(0, 1)}", f"{size} - 1 - {v}", f"{v} + {size}", f"{v} - {size}", f"{number}"),
            *(f"{v} * {self.pick(3, 4)} + {w}", f"({v} + {w}) * {size} + {w}", f"{size} + {w} * 2"),
        )
        kind = self.numbers.random()
        if kind < 0.70:
            return plain, plain
        by = self.pick("2", "3", "4", "64", "100", size)
        if kind < 0.78 and by != size:
            return f"({plain}) / {by}", f"quotient({plain}, {by})"
        if kind < 0.88:
            return f"({plain}) % {by}", f"remainder({plain}, {by})"
        if kind < 0.92:
            return f"({plain}) / {by} * {by} + ({plain}) % {by}", plain
        c, py = self.condition_pair()
        return f"({c} ? {plain} : {v})", f"({plain} if {py} else {v})"

    def condition(self):
        """A condition, as C and Python."""
        v, w, number, size = self.pick(*self.inner), self.pick(*self.inner), self.constant(), self.size()
        kind = self.numbers.random()
        if kind < 0.12:
            return f"flag[{v} % n] > {self.pick(0, 1)}", f"play.flag({v} % n) > 0"
        if kind < 0.17:
            return f"{v} % {self.pick(2, 3)} == 0", None
        plain = self.pick(
            *(f"{v} < {size}", f"{v} < {size}", f"{v} < {number}", f"{v} + {self.pick(1, 2, 3)} < {size}"),
            *(f"{v} >= {number}", f"{v} != {w}", f"{v} == {number}", f"{size} > {number}", f"{v} <= {w}"),
            *(f"{v} > 0", f"{v} + {w} < {size}", f"{v} == {size} - 1"),
        )
        if kind > 0.8:
            other = self.pick(f"{w} < {self.size()}", f"{v} > 0", f"{w} < {self.constant()}")
            op = self.pick("&&", "&&", "||")
            return f"{plain} {op} {other}", f"{plain} {'and' if op == '&&' else 'or'} {other}"
        return plain, plain

    def condition_pair(self):
        c, py = self.condition()
        return c, py if py is not None else c  # `%` of numbers that are not negative

    def touch(self, depth):
        c, py = self.value()
        pointer = self.pick(*POINTERS)
        written = self.pick(f"{pointer}[{c}] = 1;", f"s += {pointer}[{c}];", f"{pointer}[{c}] += 2;")
        self.line(depth, written, f"play.touch('{pointer}', {py})")

    def body(self, depth, deep):
        for _ in range(self.pick(1, 1, 2)):
            self.statement(depth, deep)

    def statement(self, depth, deep):
        kind = self.numbers.random()
        if not deep or kind < 0.4:
            self.touch(depth)
        elif kind < 0.62:
            c, py = self.condition_pair()
            self.line(depth, f"if ({c}) {{", f"if {py}:")
            self.body(depth + 1, deep - 1)
            if self.numbers.random() < 0.3:
                self.line(depth, "} else {", "else:")
                self.body(depth + 1, deep - 1)
            self.line(depth, "}", [])
        elif kind < 0.85:
            self.loop(depth, deep)
        else:
            name, (c, py) = f"q{next(self.fresh)}", self.value()
            self.line(depth, f"int {name} = {c};", f"{name} = {py}")
            high = self.size()
            if self.numbers.random() < 0.8:
                self.line(depth, f"if ({name} < 0) {name} = 0;", f"{name} = max({name}, 0)")
                self.line(depth, f"if ({name} > {high} - 1) {name} = {high} - 1;", f"{name} = min({name}, {high} - 1)")
            pointer = self.pick(*POINTERS)
            self.line(depth, f"s += {pointer}[{name}];", f"play.touch('{pointer}', {name})")

    def loop(self, depth, deep):
        name, v, size = f"j{next(self.fresh)}", self.pick(*self.inner), self.size()
        low, step = self.pick("0", "0", "0", "1", v), self.pick(1, 1, 1, 2, 3, "B")
        end = self.pick(size, size, v, f"{v} + {self.pick(1, 3)}", f"{self.pick(3, 5, 9)}")
        kind = self.numbers.random()
        if kind < 0.7:
            self.line(
                depth,
                f"for (int {name} = {low}; {name} < {end}; {name} += {step}) {{",
                [f"for {name} in range({low}, {end}, {step}):", "  play.round()"],
            )
        elif kind < 0.85:
            self.line(
                depth,
                f"for (int {name} = {end} - 1; {name} >= 0; {name}--) {{",
                [f"for {name} in range({end} - 1, -1, -1):", "  play.round()"],
            )
        else:
            self.line(
                depth,
                f"int {name} = {low}; while ({name} < {end}) {{",
                [f"{name} = {low} - {step}", f"while {name} + {step} < {end}:", f"  {name} += {step}; play.round()"],
            )
        self.inner.append(name)
        if self.numbers.random() < 0.15 and kind < 0.85:
            c, py = self.condition_pair()
            word = self.pick("break", "continue")
            self.line(depth + 1, f"if ({c}) {word};", f"if {py}: {word}")
        self.body(depth + 1, deep - 1)
        self.inner.pop()
        self.line(depth, f"{name} += {step}; }}" if kind >= 0.85 else "}", [])


def function(seed):
    """Return a random function as C, and what plays it: a function of a launch and of its parameters."""
    writer = Writer(random.Random(seed))
    around = random.Random(f"host {seed}").random() < 0.2
    head = writer.pick("flat", "flat", "flat", "tile", "two", "down", "stride")
    size = writer.size()
    if head == "tile":
        top, guarded = writer.pick("(n + B - 1) / B", "n / B"), writer.pick(True, True, False)
        writer.line(
            0,
            f"meta_for (int b = 0; b < {top}; b++) meta_for (int t = 0; t < B; t++) {{ int i = b * B + t; float s = 0;",
            [f"for i in range(quotient({top.split(' / ')[0]}, B) * B):", "  play.round()"],
        )
        if guarded:
            writer.line(1, "if (i >= n) continue;", "if i >= n: continue")
        writer.inner = ["i"]
    elif head == "two":
        writer.line(
            0,
            f"meta_for (int i = 0; i < {size}; i++) meta_for (int o = 0; o < m; o++) {{ float s = 0;",
            [f"for i, o in product(range({size}), range(m)):", "  play.round()"],
        )
        writer.inner = ["i", "o"]
    elif head == "down":
        writer.line(
            0,
            f"meta_for (int i = {size} - 1; i >= 0; i--) {{ float s = 0;",
            [f"for i in range({size} - 1, -1, -1):", "  play.round()"],
        )
        writer.inner = ["i"]
    else:
        low, step = writer.pick(0, 0, 1, 2), 1 if head == "flat" else writer.pick(2, 4)
        writer.line(
            0,
            f"meta_for (int i = {low}; i < {size}; i += {step}) {{ float s = 0;",
            [f"for i in range({low}, {size}, {step}):", "  play.round()"],
        )
        writer.inner = ["i"]
    if around:
        writer.inner += ["h", "h"]
    writer.body(1, 3)
    writer.line(0, "}", [])
    block = "" if head == "tile" else "meta_block(B, B) " if head == "two" else "meta_block(B) "
    body = "\n".join(writer.c)
    parameters = "int n, int m, int k, int B, const int flag[n], float *x, float *y, float *z"
    loop = "for (int h = 0; h < k; h++)\n" if around else ""
    text = f"void f({parameters})\n{{\n{loop}meta_schedule {block}{{\n{body}\n}}\n}}\n"
    played = ["for h in range(k):", *("  " + one for one in writer.py)] if around else writer.py
    names = {"quotient": quotient, "remainder": remainder, "product": itertools.product}
    exec(
        compile("def play_it(play, n, m, k, B):\n" + "\n".join("  " + one for one in played), f"seed {seed}", "exec"),
        names,
    )
    return text, names["play_it"]


def extents(text):
    """Return the extents that are stated of pointers, and the facts."""
    unit = parse(Source("f.mf", text))
    (schedule,) = unit.schedules
    # One that is only `x[0]` is a result by pointer, touched or not.
    results = {name for name in POINTERS if set(re.findall(rf"\b{name}\[(.*?)\]", text)) <= {"0"}}
    stated = [one for one in schedule.program.arrays if one.name in POINTERS and not one.endless]
    assert len(unit.warnings) == sum(one.endless for one in schedule.program.arrays)
    return {one.name: expression(one.extents[0]) for one in stated if one.name not in results}, program_facts(
        schedule.program
    )


def in_start(facts, launch):
    values = {**launch, "h": 0}
    try:
        for symbol in facts.derived:
            values[symbol.name] = symbol.evaluate(values)
    except ZeroDivisionError:
        return False
    return all(one.holds({**dict.fromkeys(one.symbols, 0), **values}) for one in facts.constraints)


def as_python(text):
    """Turn C into Python, so far as extents need it."""
    from pycparser import c_ast, c_parser

    def of(node):
        match node:
            case c_ast.TernaryOp():
                return f"({of(node.iftrue)} if {of(node.cond)} else {of(node.iffalse)})"
            case c_ast.BinaryOp(op="/"):
                return f"quotient({of(node.left)}, {of(node.right)})"
            case c_ast.BinaryOp(op="%"):
                return f"remainder({of(node.left)}, {of(node.right)})"
            case c_ast.BinaryOp():
                return f"({of(node.left)} {node.op} {of(node.right)})"
            case c_ast.UnaryOp():
                return f"({node.op}{of(node.expr)})"
            case c_ast.ID():
                return node.name
            case _:
                return node.value

    tree = c_parser.CParser().parse(f"int e = {text};")
    return of(tree.ext[0].init)


def launches(numbers):
    """Yield values of parameters, and flags."""
    for number in range(LAUNCHES):
        some = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 20, 31, 40)
        sizes = [numbers.choice(some) for _ in range(3)]
        if number % 3 == 2:
            sizes[numbers.randrange(3)] = numbers.choice(CONSTANTS) + numbers.randint(-1, 2)
        flags = (lambda _: 0, lambda _: 1, lambda index: index * 7919 % 3 - 1)[number % 3]
        yield dict(zip(PARAMETERS, (*sizes, numbers.choice((1, 2, 3, 4, 8, 32))), strict=True)), flags


def faults(seed):
    """Return what is wrong with the extents of a random function, and what is stated."""
    text, play_it = function(seed)
    said, facts = extents(text)
    codes = {name: compile(as_python(extent), name, "eval") for name, extent in said.items()}
    found = []
    for launch, flags in launches(random.Random(seed)):
        if any(value < 0 for value in launch.values()) or not in_start(facts, launch):
            continue
        if "for (int h" in text and launch["k"] == 0:
            continue  # there is no launch
        play = Play(flags)
        try:
            play_it(play, **launch)
        except (TooLongError, ZeroDivisionError):
            continue
        for name, code in codes.items():
            stated = eval(code, {"quotient": quotient, "remainder": remainder}, launch)
            touched = play.greatest.get(name, -1) + 1
            if play.least.get(name, 0) < 0 or max(stated, 0) != touched:
                span = f"{play.least.get(name)} to {touched - 1}"
                found.append(f"seed {seed}: {name}[{said[name]}] is {stated}, touched are {span}, {launch}\n{text}")
    return found, said


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1500, 100))
def test_extents_are_what_the_serial_program_touches(first):
    stated = 0
    for seed in range(first, first + 100):
        found, said = faults(seed)
        assert not found, found[0]
        stated += len(said)
    assert stated > 50
