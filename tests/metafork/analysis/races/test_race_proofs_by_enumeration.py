"""Random guards around random indices: what is proved free of races is so at every small point, by enumeration."""

from itertools import combinations, product
from random import Random

import pytest

from metafork.analysis.races.races import RaceKind, race_report
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from tests.sampling import sampled

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


@pytest.mark.parametrize("seed", sampled(range(3), 2))
@pytest.mark.slow
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


WRAPPED = {
    "(p + 1) % n": lambda p, n, k: rest(p + 1, n),
    "(p + n - 1) % n": lambda p, n, k: rest(p + n - 1, n),
    "(p - 1 + n) % n": lambda p, n, k: rest(p - 1 + n, n),
    "(p - 1) % n": lambda p, n, k: rest(p - 1, n),
    "(p + k) % n": lambda p, n, k: rest(p + k, n),
    "(2 * p + 1) % n": lambda p, n, k: rest(2 * p + 1, n),
    "(p + 1) % k": lambda p, n, k: rest(p + 1, k),
    "p == n - 1 ? 0 : p + 1": lambda p, n, k: 0 if p == n - 1 else p + 1,
    "p != n - 1 ? p + 1 : 0": lambda p, n, k: p + 1 if p != n - 1 else 0,
    "p < n - 1 ? p + 1 : 0": lambda p, n, k: p + 1 if p < n - 1 else 0,
    "p + 1 >= n ? 0 : p + 1": lambda p, n, k: 0 if p + 1 >= n else p + 1,
    "p > 0 ? p - 1 : n - 1": lambda p, n, k: p - 1 if p > 0 else n - 1,
    "p == 0 ? n - 1 : p - 1": lambda p, n, k: n - 1 if p == 0 else p - 1,
    "p + 2 < n ? p + 2 : p + 2 - n": lambda p, n, k: p + 2 if p + 2 < n else p + 2 - n,
    "p + k >= n ? p + k - n : p + k": lambda p, n, k: p + k - n if p + k >= n else p + k,
    "p == k ? 0 : p + 1": lambda p, n, k: 0 if p == k else p + 1,
    "p == n - 1 ? 1 : p + 1": lambda p, n, k: 1 if p == n - 1 else p + 1,
    "p < k ? p : p - k": lambda p, n, k: p if p < k else p - k,
    "n - 1 - (p + 1) % n": lambda p, n, k: n - 1 - rest(p + 1, n),
    "p": lambda p, n, k: p,
    "0": lambda p, n, k: 0,
}
SURELY_FREE = (
    *("(p + 1) % n", "(p + n - 1) % n", "(p - 1 + n) % n", "(p + k) % n", "n - 1 - (p + 1) % n", "p"),
    *(form for form in WRAPPED if "?" in form and not any(part in form for part in ("k", "? 1", "+ 2"))),
)


def rest(value, divisor):
    """C's remainder."""
    return value - divisor * int(value / divisor)


def wrapped(index, guard, written="a[{}] = k;", scalar=False):
    access = written.format("q" if scalar else index)
    body = f"int q = {index}; {access}" if scalar else access
    return (
        "void f(int n, int d, int B, int k, int a[n]) { meta_schedule { "
        "meta_for (int i = 0; i < d; i++) meta_for (int u = 0; u < B; u++) { int p = i * B + u; "
        f"if ({guard}) {{ {body} }} }} }} }}"
    )


def doubts(text):
    report = race_report(parse(Source("f.mf", text)).schedules[0].program)
    return {race.kind for race in report.races} | {pair.kind for pair in report.unproved}


def overlaps(touched):
    """Return the kinds of races between iterations that write one element; no iteration writes it twice."""
    pairs = (pair for own in touched.values() for pair in combinations(own, 2))
    return {RaceKind.THREADS if i == other else RaceKind.GRID for (i, _), (other, _) in pairs}


@pytest.mark.parametrize("index", WRAPPED)
@pytest.mark.parametrize("scalar", [False, True])
@pytest.mark.sampled(10)
def test_elements_at_wrapped_indices_are_told_apart_where_they_are_apart(index, scalar):
    for guard, holds in (("p < n", lambda p, n, k: p < n), ("1", lambda p, n, k: True)):
        doubtful = doubts(wrapped(index, guard, scalar=scalar))
        assert not (doubtful and index in SURELY_FREE and guard == "p < n"), (index, guard)
        for d, width, n, k in product((1, 2, 3), (1, 2, 3, 4), (1, 2, 4, 6, 9, 12), (1, 3, 5)):
            touched = {}
            for i, u in product(range(d), range(width)):
                p = i * width + u
                if holds(p, n, k):
                    touched.setdefault(WRAPPED[index](p, n, k), []).append((i, u))
            assert overlaps(touched) <= doubtful, (index, guard, n, k)


def test_what_a_guard_says_of_a_wrapped_index_holds_under_the_guard_alone():
    text = wrapped("(p + 1) % n", "p < n", "k = a[{}];").replace("k = a[(p + 1) % n]", "int w = (p + 1) % n")
    text = text.replace("} } } }", "} a[(p + 1) % n] = k; } } }").replace(
        "{ meta_schedule", "{ assert(n >= 1); meta_schedule"
    )
    assert doubts(text) == {RaceKind.GRID, RaceKind.THREADS}
    assert doubts(text.replace("a[(p + 1) % n] = k;", "if (p < n) a[(p + 1) % n] = k;")) == set()


PARTS = ("p / m", "p % m", "p / k", "p % k", "p / m % k", "p / (m * k)", "p / m / k", "p % (m * k)", "p % (m * k) / m")
PARTS += ("p % m / 2", "(p + 1) % m", "p / m * 2", "p - p / m * k", "m - 1 - p % m", "(p + m) / k", "p")
FACTORS = ("1", "m", "k", "m * k", "2 * m", "2")
DECODED = (
    ("p / m", "p % m"),
    ("p % (m * k) / m", "p / (m * k)", "p % m"),
    ("p / m / k", "p / m % k", "p % m"),
    ("p / (m * k)", "p / m % k", "p % m"),
)


def decoded(numbers):
    """Return the indices of an access: some parts of a number, in an array of as many dimensions or in one line."""
    parts = list(
        numbers.choice(DECODED) if numbers.random() < 0.5 else numbers.sample(PARTS, numbers.choice((1, 2, 3)))
    )
    if numbers.random() < 0.2:
        parts[-1] = numbers.choice(PARTS)
    if numbers.random() < 0.5:
        return parts
    factors = ["1", "m", "m * k"] if numbers.random() < 0.6 else numbers.sample(FACTORS, len(parts))
    return [" + ".join(f"({part}) * ({factor})" for part, factor in zip(reversed(parts), factors, strict=False))]


def elements(indices, point):
    """Return the elements that the iterations touch, and by which each is touched."""
    code = [compile(index.replace("/", "//"), "<index>", "eval") for index in indices]
    touched = {}
    for i, u in product(range(point["d"]), range(point["B"])):
        values = {**point, "p": i * point["B"] + u}
        touched.setdefault(tuple(eval(one, values) for one in code), []).append((i, u))
    return touched


@pytest.mark.parametrize("seed", sampled(range(8), 3))
@pytest.mark.slow
def test_elements_at_parts_of_a_number_are_told_apart_only_where_they_are_apart(seed):
    numbers = Random(seed)
    proved = 0
    for _ in range(12):
        indices = decoded(numbers)
        extents = "".join("[n]" for _ in indices)
        doubtful = doubts(
            f"void f(int n, int d, int B, int m, int k, int a{extents}) {{ meta_schedule {{ "
            "meta_for (int i = 0; i < d; i++) meta_for (int u = 0; u < B; u++) { int p = i * B + u; "
            f"a{''.join(f'[{one}]' for one in indices)} = 1; }} }} }}"
        )
        proved += not doubtful
        for d, width, m, k in product((1, 2, 5), (1, 2, 3, 4), (1, 2, 3), (1, 2, 3, 5)):
            touched = elements(indices, {"d": d, "B": width, "m": m, "k": k})
            assert overlaps(touched) <= doubtful, (indices, d, width, m, k)
    assert proved >= 1
