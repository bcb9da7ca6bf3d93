"""Random phases in block-level loops that change uniform scalars: what is proved free of races is so by enumeration."""

from itertools import product
from random import Random

import pytest

from metafork.analysis.races.races import RaceKind, race_report
from metafork.frontend import parse
from metafork.ir.messages.source import Source

LOOPS = (
    ("B / 2", "h > 0", "h /= 2"),
    ("B / 2", "h > 0", "h >>= 1"),
    ("B", "h > 1", "h = (h + 1) / 2"),
    ("1", "h < B", "h *= 2"),
    ("0", "h < 3", "h += 1"),
    ("5", "h >= 0", "h -= 2"),
    ("n", "h > B", "h = h - B"),
)
FLIPS = ("c = 1 - c", "c ^= 1", "c = !c", "c = (c + 1) % 3", "c = h % 2", "c = c + h", "c = 2 - c")
BRANCHES = ("", "", "if (h > 1) c = 1;", "if (h == 2) c = 0;", "if (c > 1) c = c - 2; else c = 1;")
INDICES = (
    "t", "t + h", "t + h - 1", "t + c", "h", "c",
    "t ^ h", "t ^ 1", "t ^ c", "2 * h * t", "2 * h * t + h", "(t + 1) % B",
    "c * B + t", "(1 - c) * B + t", "c * B + (t + 1) % B", "t % 2", "(t + h) % 2 + 2 * t", "t & 1", "t >> 1",
    "2 * B - 1 - t", "t + q", "k", "k + 1", "2 * k", "k + h",
)  # fmt: skip
GUARDS = (
    "t < h", "t <= h", "t >= h", "t + h < B", "t % (2 * h + 2) == 0", "(h > 0 && t % (2 * h) == 0)", "(t ^ h) > t",
    "(t + c) % 2 == 0", "!(t & 1)", "t < h - q", "t != h", "h == 0", "c", "c == 0", "t == c", "(t + 1) / 2 == h", "1",
)  # fmt: skip
STEPS = ("B", "B", "B - 1", "2 * B", "h", "1")


def made(numbers):
    start, condition, step = numbers.choice(LOOPS)
    joined = numbers.choice((" && ", " && ", " || ")).join(numbers.sample(GUARDS, numbers.choice((1, 1, 2))))
    stride = (numbers.choice(("t", "t", "h + t", "0")), numbers.choice(STEPS))
    return {
        "start": start, "condition": condition, "step": step, "flip": numbers.choice(FLIPS),
        "branch": numbers.choice(BRANCHES), "guard": joined,
        "to": numbers.choice(INDICES), "of": numbers.choice(INDICES), "stride": stride,
        "spelling": numbers.choice(("for", "while")),
    }  # fmt: skip


def text_of(made):
    start, step = made["stride"]
    phase = (
        f"int q = (h + 1) / 2; {made['branch']} meta_for (int t = 0; t < B; t++) "
        f"for (int k = {start}; k < n; k += {step}) "
        f"if ({made['guard']}) s[{made['to']}] = s[{made['of']}] + 1; {made['flip']};"
    )
    if made["spelling"] == "for":
        loop = f"for (int h = {made['start']}; {made['condition']}; {made['step']}) {{ {phase} }}"
    else:
        loop = f"int h = {made['start']}; while ({made['condition']}) {{ {phase} {made['step']}; }}"
    return (
        "void f(int n, int B, int x[n]) { meta_schedule { meta_for (int i = 0; i < n; i++) { "
        f"int s[n]; int c = 0; {loop} meta_for (int t = 0; t < B; t++) x[i] = x[i]; }} }} }}"
    )


def in_python(code, kind="eval"):
    for c, python in (("&&", " and "), ("||", " or "), ("!(", " 0 == ("), ("!c", "int(c == 0)")):
        code = code.replace(c, python)
    code = code.replace("/=", "//=") if "/=" in code else code.replace("/", "//")
    return compile(code.strip(), "<made>", kind)


def races(made, point):
    """Say whether two threads touch one element, one of them writing it, between two barriers; ``None``: no end."""
    code = {name: in_python(made[name]) for name in ("start", "condition", "guard", "to", "of")}
    flip, step = (in_python(made[name], "exec") for name in ("flip", "step"))
    first, stride = map(in_python, made["stride"])
    values = {**point, "c": 0}
    values["h"] = eval(code["start"], values)
    for _ in range(8):
        if not eval(code["condition"], values):
            break
        values["q"] = (values["h"] + 1) // 2
        match made["branch"]:
            case "if (h > 1) c = 1;":
                values["c"] = 1 if values["h"] > 1 else values["c"]
            case "if (h == 2) c = 0;":
                values["c"] = 0 if values["h"] == 2 else values["c"]
            case "if (c > 1) c = c - 2; else c = 1;":
                values["c"] = values["c"] - 2 if values["c"] > 1 else 1
            case other:
                assert not other
        touches = {}
        for t in range(point["B"]):
            values["t"] = t
            k = eval(first, values)
            while k < point["n"]:
                values["k"] = k
                if eval(code["guard"], values):
                    touches.setdefault(eval(code["to"], values), set()).add((t, True))
                    touches.setdefault(eval(code["of"], values), set()).add((t, False))
                by = eval(stride, values)
                if by <= 0:
                    break
                k += by
        for own in touches.values():
            if any((a[1] or b[1]) and a[0] != b[0] for a, b in product(own, repeat=2)):
                return True
        exec(flip, values)
        exec(step, values)
    return False


def checked(seeds, each):
    proved = 0
    for seed in seeds:
        numbers = Random(seed)
        for _ in range(each):
            one = made(numbers)
            report = race_report(parse(Source("f.mf", text_of(one))).schedules[0].program)
            doubtful = [*report.races, *report.unproved]
            if any(pair.kind is RaceKind.THREADS and pair.first.array == "s" for pair in doubtful):
                continue
            proved += 1
            for n, width in product((1, 4, 7), range(1, 7)):
                assert not races(one, {"n": n, "B": width}), (text_of(one), n, width)
    return proved


@pytest.mark.slow
def test_no_phase_that_races_is_proved_free_of_races():
    assert checked(range(2), 20) >= 3


@pytest.mark.slow
def test_no_phase_that_races_is_proved_free_of_races_at_length():
    assert checked(range(100, 120), 40) >= 60
