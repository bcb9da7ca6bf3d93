"""Random guards around random indices: what is proved free of races is so at every small point, by enumeration."""

from itertools import product
from random import Random

import pytest

from metafork.analysis.races.races import RaceKind, race_report
from metafork.frontend import parse
from metafork.ir.messages.source import Source

INDICES = (
    "i * B + u",
    "u * d + i",
    "i * B + u + 1",
    "i * B + k",
    "i * B",
    "d * B - 1 - i * B - u",
    "2 * (i * B + u)",
    "2 * (i * B + u) + 1",
    "k",
    "m",
    "u",
    "k + u",
    "i * B + u + d * B",
)
TERMS = ("i", "u", "k", "m", "i * B + u", "i * B + u + 1", "k + 1", "B - 1", "d", "0", "B / 2", "(u + 1) / 2")


def guard(numbers, depth=2):
    choice = numbers.random()
    if depth and choice < 0.5:
        joined = f"{guard(numbers, depth - 1)} {numbers.choice(('&&', '||'))} {guard(numbers, depth - 1)}"
        return f"({joined})"
    if choice < 0.6:
        return f"!({guard(numbers, 0)})"
    return f"{numbers.choice(TERMS)} {numbers.choice(('!=', '!=', '==', '<', '<='))} {numbers.choice(TERMS)}"


def made(numbers):
    """Return the accesses of a random program: (guard, written index, read index) of each statement."""
    return [
        (guard(numbers), numbers.choice(INDICES), numbers.choice(INDICES)) for _ in range(numbers.choice((1, 1, 2)))
    ]


def text_of(statements):
    body = " ".join(f"if ({condition}) a[{to}] = a[{of}] + 1;" for condition, to, of in statements)
    return (
        "void f(int n, int d, int B, int k, int m, int a[n]) { meta_schedule { "
        f"meta_for (int i = 0; i < d; i++) meta_for (int u = 0; u < B; u++) {{ {body} }} }} }}"
    )


def in_python(code):
    for c, python in (("&&", " and "), ("||", " or "), ("!(", " not ("), ("/", "//")):
        code = code.replace(c, python)
    return compile(code.strip(), "<guard>", "eval")


def conflicts(statements, point):
    """Return the kinds of races at a point, found by going through all iterations."""
    code = [tuple(in_python(part) for part in statement) for statement in statements]
    touches = {}
    for i, u in product(range(point["d"]), range(point["B"])):
        values = {**point, "i": i, "u": u}
        for condition, to, of in code:
            if eval(condition, values):
                touches.setdefault(eval(to, values), set()).add((i, u, True))
                touches.setdefault(eval(of, values), set()).add((i, u, False))
    found = set()
    for own in touches.values():
        for (i, u, writes), (other_i, other_u, also_writes) in product(own, repeat=2):
            if (writes or also_writes) and (i, u) != (other_i, other_u):
                found.add(RaceKind.THREADS if i == other_i else RaceKind.GRID)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_nothing_that_races_is_proved_free_of_races(seed):
    numbers = Random(seed)
    proved = 0
    for _ in range(20):
        statements = made(numbers)
        report = race_report(parse(Source("f.mf", text_of(statements))).schedules[0].program)
        doubtful = {race.kind for race in report.races} | {pair.kind for pair in report.unproved}
        proved += not doubtful
        for d, width, k, m in product((1, 2, 3), (1, 2, 3, 4), range(0, 8, 2), range(1, 8, 3)):
            point = {"n": 100, "d": d, "B": width, "k": k, "m": m}
            assert conflicts(statements, point) <= doubtful, (statements, point)
    assert proved >= 1
