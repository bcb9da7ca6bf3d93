"""What C would not compute is not asked to be defined, and what is not defined nowhere reaches the code."""

import ctypes

import numpy as np
import pytest

from metafork.ir.messages.source import Source
from metafork.swizzle.language.elaborate import load
from metafork.swizzle.model.index import Binary, Choose, Compare, Name, Number, evaluate, to_c, total
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.output.print_llvm import print_ptx
from metafork.swizzle.search.search import solutions
from tests.metafork.swizzle.running import check_c, check_cuda, compiled

FUNCTIONS = [
    "i > 0 ? x[j / i] : 0",
    "i != 0 && j / i < 2 ? x[j / i] : x[i]",
    "i == 0 || j % i == 0 ? x[i] : x[j % i]",
    "i > 0 ? (j > 0 ? x[i / j] : x[j / i]) : 0",
    "i > 2 ? x[(i + 1) / (i - 2)] : x[i]",
    "i > 0 ? x[(i - 3) / i + 2] : x[1]",
    "i > 0 ? x[(j - i) % i] : x[1]",
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_guarded_divisions_are_accepted_and_run(function, tmp_path):
    text = f"x: [16] = input\nl: [8, 3] = \\i, j. {function}\ngoal l = \\i, j. {function}\n"
    problem = load(Source("guarded", text))
    found = solutions(problem)
    assert len(found) == 1
    check_c(problem, found, tmp_path)
    check_cuda(problem, found, tmp_path)


def test_guarded_divisions_have_ptx():
    text = "x: [16] = input\nl: [8, 3] = \\i, j. i > 0 ? x[j / i] : 0\ngoal l = \\i, j. i > 0 ? x[j / i] : 0\n"
    problem = load(Source("guarded", text))
    assert "div" in print_ptx([lower(problem, solutions(problem)[0])])


def test_constants_are_computed_only_where_they_are_used():
    text = "let k = 0\nlet r = k == 0 ? 1 : 8 / k\nlet q = k != 0 && 8 / k > 1 ? 5 : 4\n"
    text += "x: [q] = input\ngoal x = \\i. x[i]\n"
    assert load(Source("lazy", text)).statement("x").shape == (4,)
    spec = "x: [4] = input\ngoal x = spec { for i < 4 { if (i == 0 || 4 / i > 0) { x[i] = x[i]; } } }\n"
    assert solutions(load(Source("lazy", spec)))


def test_total_divisions_agree_with_c_on_every_input(tmp_path):
    """Random indices: C prints what ``evaluate`` computes, floors included, and never divides by zero."""
    random = np.random.default_rng(5)
    ranges = {"a": (-4, 6), "b": (-3, 5)}

    def some(depth):
        kind = int(random.integers(0, 8)) if depth else int(random.integers(0, 2))
        match kind:
            case 0:
                return Name("ab"[int(random.integers(2))])
            case 1:
                return Number(int(random.integers(-3, 6)))
            case 2 | 3 | 4:
                return Binary("/%"[int(random.integers(2))], some(depth - 1), some(depth - 1))
            case 5:
                return Binary("+-*"[int(random.integers(3))], some(depth - 1), some(depth - 1))
            case 6:
                op = ["<", "==", "&&", "||"][int(random.integers(4))]
                return Compare(op, some(depth - 1), some(depth - 1))
            case _:
                return Choose(some(depth - 1), some(depth - 1), some(depth - 1))

    indices = [total(some(3), ranges) for _ in range(150)]
    grid = [(a, b) for a in range(-4, 7) for b in range(-3, 6)]
    code = "void run(int a, int b, int *out) {\n"
    code += "".join(f"  out[{n}] = {to_c(one, ranges)};\n" for n, one in enumerate(indices)) + "}\n"
    library = compiled(code, ".c", tmp_path, "-Wno-parentheses", "-Wno-bool-compare", "-Wno-int-in-bool-context",
                       "-Wno-unused-parameter", "-Wno-tautological-compare", "-Wno-type-limits")  # fmt: skip
    for a, b in grid:
        out = np.zeros(len(indices), dtype=np.int32)
        library.run(a, b, ctypes.c_void_p(out.ctypes.data))
        assert out.tolist() == [int(evaluate(one, {"a": a, "b": b})) for one in indices]
