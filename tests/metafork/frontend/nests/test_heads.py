"""Heads of ``meta_for``s: the elements that blocks and threads reach are those of the loop that was written."""

import random
from itertools import product

import pytest

from metafork.ir import program as ir
from metafork.ir.arithmetic.evaluation import integer_value
from tests.metafork.frontend.marked import diagnostics_of, program_of

HEADERS = "#include <limits.h>\n#include <stddef.h>\n#include <stdint.h>\n"
VALUES = {"n": (0, 1, 2, 7, 12), "m": (1, 5, 9), "lo": (0, 3), "s": (1, 3), "B": (1, 2, 5)}

# Loops over i, as C has them, and what they are in Python.
LOOPS = {
    "int i = 0; i < n; i++": lambda n, m, lo, s: range(n),
    "int i = 0; i < n; ++i": lambda n, m, lo, s: range(n),
    "int i = 0; n > i; i += 1": lambda n, m, lo, s: range(n),
    "int i = 1; i <= n; i = i + 2": lambda n, m, lo, s: range(1, n + 1, 2),
    "int i = lo; i < n; i = 3 + i": lambda n, m, lo, s: range(lo, n, 3),
    "int i = lo; i < n + lo; i += s": lambda n, m, lo, s: range(lo, n + lo, s),
    "int i = lo + 1; i <= n - 2; i += s": lambda n, m, lo, s: range(lo + 1, n - 1, s),
    "int i = 0; i != n; i++": lambda n, m, lo, s: range(n),
    "int i = lo; i < n && i < m; i++": lambda n, m, lo, s: range(lo, min(n, m)),
    "int i = lo; i < (n < m ? n : m); i += 2": lambda n, m, lo, s: range(lo, min(n, m), 2),
    "int i = lo; i < (n >= m ? m : n); i++": lambda n, m, lo, s: range(lo, min(n, m)),
    "int i = n - 1; i >= 0; i--": lambda n, m, lo, s: range(n - 1, -1, -1),
    "int i = n; i > lo; i -= s": lambda n, m, lo, s: range(n, lo, -s),
    "int i = n; i != 0; --i": lambda n, m, lo, s: range(n, 0, -1),
    "int i = (n + 1) * m; i < (n + 2) * m; i++": lambda n, m, lo, s: range((n + 1) * m, (n + 2) * m),
    "long i = -lo; i <= lo; i++": lambda n, m, lo, s: range(-lo, lo + 1),
    "int32_t i = n - 1; i >= 0; i--": lambda n, m, lo, s: range(n - 1, -1, -1),
    "unsigned i = 0; i < n; i += s": lambda n, m, lo, s: range(0, n, s),
    "unsigned i = lo; i < n; i++": lambda n, m, lo, s: range(lo, n),
    "int i = 1; i < (int)n - 1; i++": lambda n, m, lo, s: range(1, n - 1),
    "long i = lo; i <= (long)n - 2; i += s": lambda n, m, lo, s: range(lo, n - 1, s),
    "int i = (int)(n - 1); i >= (int)lo; i--": lambda n, m, lo, s: range(n - 1, lo - 1, -1),
    "ptrdiff_t i = (ptrdiff_t)n - 2; i > 0; i -= 2": lambda n, m, lo, s: range(n - 2, 0, -2),
    "int i = 0; i < n && i < INT_MAX; i++": lambda n, m, lo, s: range(n),
    "int i = lo; INT_MAX > i && i < (int)n; i += s": lambda n, m, lo, s: range(lo, n, s),
    "int i = 'a' - 'Z'; i <= n; i++": lambda n, m, lo, s: range(7, n + 1),
    "char i = '\\2'; i < '\\n' && i < n; i++": lambda n, m, lo, s: range(2, min(10, n)),
    "int i = 0; i + 1 < n; i++": lambda n, m, lo, s: range(n - 1),
    "int i = lo; 2 + i <= n; i += s": lambda n, m, lo, s: range(lo, n - 1, s),
    "int i = 1; i - 1 < n && n + m >= i + lo; i++": lambda n, m, lo, s: range(1, min(n + 1, n + m - lo + 1)),
    "int i = n; i - 1 > lo; i--": lambda n, m, lo, s: range(n, lo + 1, -1),
    "int i = n; 0 <= i - m; i -= s": lambda n, m, lo, s: range(n, m - 1, -s),
    "size_t i = lo; i + m < n + 8; i++": lambda n, m, lo, s: range(lo, n + 8 - m),
}


def reached(program, values):
    """The values of ``i`` and ``j`` for which the threads of a program write, each as often as one does."""
    return [found for known in each(program.grid, values) for found in written(program.body, known)]


def each(loops, values):
    for point in product(*(range(max(0, integer_value(loop.extent, values))) for loop in loops)):
        yield values | {loop.var: value for loop, value in zip(loops, point, strict=True)}


def written(statements, known):
    found = []
    for one in statements:
        match one:
            case ir.Declare(name=name, value=value):
                known = known | {name: integer_value(value, known)}
            case ir.If(condition=condition, then=then):
                found += written(then, known) if integer_value(condition, known) else []
            case ir.Phase(threads=threads, body=body):
                found += [one for inner in each(threads, known) for one in written(body, inner)]
            case ir.Assign():
                found.append((known["i"], known.get("j")))
    return found


def points(seed):
    """Every value once, and some of their combinations."""
    dice = random.Random(seed)
    return [{name: dice.choice(values) for name, values in VALUES.items()} for _ in range(24)]


@pytest.mark.parametrize("head", LOOPS)
def test_blocks_reach_the_elements_of_the_loop(head):
    text = (
        f"{HEADERS}void f(int n, int m, int lo, int s, int B, float a[1000000]) "
        f"{{ meta_schedule meta_block(B) {{ meta_for ({head}) a[i + 1000] = 1; }} }}"
    )
    program = program_of(text)
    for values in points(head):
        expected = LOOPS[head](*(values[name] for name in ("n", "m", "lo", "s")))
        assert sorted(i for i, _ in reached(program, values)) == sorted(expected), values


@pytest.mark.parametrize("head", LOOPS)
def test_heads_of_a_grid_are_brought_to_zero(head):
    text = (
        f"{HEADERS}void f(int n, int m, int lo, int s, int B, float a[1000000]) {{ meta_schedule {{ "
        f"meta_for ({head}) meta_for (int t = B - 1; t >= 0; t--) a[(i + 1000) * B + t] = 1; }} }}"
    )
    program = program_of(text)
    for values in points(head):
        expected = LOOPS[head](*(values[name] for name in ("n", "m", "lo", "s")))
        assert sorted(i for i, _ in reached(program, values)) == sorted([*expected] * values["B"]), values


TRIANGLES = {
    "int j = i; j < n; j++": lambda i, n, m: range(i, n),
    "int j = 0; j <= i; j++": lambda i, n, m: range(i + 1),
    "int j = n - i; j < m && j < 2 * i; j++": lambda i, n, m: range(n - i, min(m, 2 * i)),
    "int j = i * m; j < (i + 1) * m; j++": lambda i, n, m: range(i * m, (i + 1) * m),
}


@pytest.mark.parametrize("shape", ["B", "B, 2"])
@pytest.mark.parametrize("head", TRIANGLES)
def test_ranges_that_depend_on_an_outer_loop_are_cut_from_a_box(head, shape):
    text = (
        f"void f(int n, int m, int B, float a[1000][1000]) {{ meta_schedule meta_block({shape}) "
        f"{{ meta_for (int i = 1; i < n; i++) meta_for ({head}) a[i][j + 100] = 1; }} }}"
    )
    program = program_of(text)
    for values in points(head):
        n, m = values["n"], values["m"]
        expected = [(i, j) for i in range(1, n) for j in TRIANGLES[head](i, n, m)]
        assert sorted(reached(program, values)) == sorted(expected), values


def test_tiles_by_their_first_elements():
    text = (
        "#define MIN(a, b) ((a) < (b) ? (a) : (b))\n"
        "void f(int n, int m, int B, float a[n][m]) { meta_schedule {\n"
        "meta_for (int i0 = 0; i0 < n; i0 += B) meta_for (int j0 = 0; j0 < m; j0 += 3)\n"
        "meta_for (int i = i0; i < i0 + B && i < n; i++) meta_for (int j = j0; j < MIN(j0 + 3, m); j++)\n"
        "a[i][j] = 1; } }"
    )
    program = program_of(text)
    for values in points("tiles"):
        expected = list(product(range(values["n"]), range(values["m"])))
        assert sorted(reached(program, values)) == expected, values


def test_no_index_of_a_block_left_over_wraps_around():
    text = (
        "void f(int n, int B, char a[9]) { meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) a[i] = 1; } }"
    )
    (condition,) = program_of(text).assumptions
    assert integer_value(condition, {"n": 2**31 - 32 * 1000, "B": 1000}) == 1
    assert integer_value(condition, {"n": 2**31 - 31 * 1000, "B": 1000}) == 0
    assert condition.op == "<="
    wide = text.replace("(int i", "(long i").replace("int n", "long n")
    assert not program_of(wide).assumptions


REFUSED = {
    "a product": ("MF0103", "int i = 1; i < n; i *= 2"),
    "no bound": ("MF0103", "int i = 0; a[i] > 0; i++"),
    "the wrong way": ("MF0103", "int i = 0; i < n; i--"),
    "an unsigned one downwards": ("MF0103", "unsigned i = n; i > 0; i--"),
    "a sign that is lost": ("MF0103", "int i = -n; i < B * 2u; i++"),
    "an unsigned sum that is negative": ("MF0103", "unsigned i = 0; i - 1 < n; i++"),
    "a sum that an unsigned bound makes large": ("MF0103", "int i = 0; i - 1 < B * 2u; i++"),
    "a conversion to a fraction": ("MF0103", "int i = 1; i < (float)n; i++"),
    "its own bound": ("MF0103", "int i = 0; i < n - i; i++"),
    "a bound from memory": ("MF0105", "int i = 0; i < a[0]; i++"),
    "a bound that may be passed by": ("MF0103", "int i = B; i < n && i != 3; i++"),
    "a narrow unsigned one": ("MF0103", "unsigned short i = n - 1; i < B; i++"),
    "a start that loses bits": ("MF0103", "int i = far; i < far + 4; i++"),
    "a start that loses its sign": ("MF0103", "int i = many; i < many + 4; i++"),
    "a floating start": ("MF0103", "int i = x; i < x + 3; i++"),
    "the lesser of two signs": ("MF0103", "int i = n; i < (many < B ? many : B); i++"),
    "a name of a type": ("MF0103", "whole i = -2; i < many; i++"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_heads_that_say_no_number_of_iterations(why):
    code, head = REFUSED[why]
    text = (
        "typedef int whole; void f(int n, int B, long far, unsigned many, float x, int a[n]) "
        f"{{ meta_schedule meta_block(B) {{ meta_for ({head}) a[i] = 1; }} }}"
    )
    assert [one.code for one in diagnostics_of(text)][:1] == [code]


NESTS = {
    "more extents than loops": ("MF0101", "meta_block(B, B)", "meta_for (int i = 0; i < n; i++) a[i] = 1;"),
    "both clauses": ("MF0101", "meta_block(B) meta_grid(1)", "meta_for (int i = 0; i < n; i++) a[i] = 1;"),
    "two nests in a loop": (
        "MF0101",
        "meta_block(B)",
        "meta_for (int i = 0; i < n; i++) for (int k = 0; k < 2; k++) meta_for (int j = 0; j < n; j++) a[j] = k;",
    ),
    "a statement between": (
        "MF0106",
        "meta_block(B)",
        "meta_for (int i = 0; i < n; i++) { a[i] = 0; meta_for (int j = 0; j < n; j++) a[j] = 1; }",
    ),
    "a sum between": (
        "MF0109",
        "meta_block(B)",
        "meta_for (int i = 0; i < n; i++) { int k = 0; meta_for (int j = 0; j < n; j++) a[i * n + j] = k++; }",
    ),
    "a variable with the name of an extent": ("MF0101", "meta_block(B)", "meta_for (int B = 0; B < n; B++) a[B] = 1;"),
    "no thread": ("MF0101", "meta_block(-1)", "meta_for (int i = 0; i < n; i++) a[i] = 1;"),
    "a name that the body hides": (
        "MF0103",
        "meta_block(B)",
        "meta_for (int i = 0; i < n && i < m; i++) meta_for (int m = 0; m < 4; m++) a[i * 4 + m] = 1;",
    ),
    "signs that an outer variable brings": (
        "MF0103",
        "meta_block(B)",
        "meta_for (unsigned i = 0; i < n; i++) meta_for (int j = i - 2; j < m; j++) if (j >= 0) a[i * m + j] = 1;",
    ),
    "what is read once and written": (
        "MF0106",
        "meta_block(B)",
        "meta_for (int i = 0; i < n; i++) { int p = a[i * n]; meta_for (int j = 0; j < n; j++) a[i * n + j] -= p; }",
    ),
    "no extent": ("MF0010", "meta_block()", "meta_for (int i = 0; i < n; i++) a[i] = 1;"),
    "four": ("MF0010", "meta_block(B, 1, 1, 1)", "meta_for (int i = 0; i < n; i++) a[i] = 1;"),
    "a flaw in an extent": ("MF0301", "meta_block(C)", "meta_for (int i = 0; i < n; i++) a[i] = 1;"),
    "twice": ("MF0010", "meta_block(B) meta_block(B)", "meta_for (int i = 0; i < n; i++) a[i] = 1;"),
}


@pytest.mark.parametrize("why", NESTS)
def test_nests_that_are_not_cut_into_blocks(why):
    code, clause, nest = NESTS[why]
    text = f"void f(int n, int m, int B, int a[n * n]) {{ meta_schedule {clause} {{ {nest} }} }}"
    found = diagnostics_of(text)
    assert [one.code for one in found][:1] == [code], found


def test_a_loop_without_a_block_is_told_of_the_clause():
    text = "void f(int n, int a[n]) { meta_schedule { meta_for (int i = 0; i < n; i++) a[i] = 1; } }"
    (found,) = diagnostics_of(text)
    assert found.code == "MF0101"
    assert "meta_block(B)" in found.way_out


def test_an_extent_keeps_its_name():
    text = (
        "void f(int n, int i_thread, int a[n]) { meta_schedule meta_block(i_thread) { "
        "meta_for (int i = 0; i < n; i++) a[i] = 1; } }"
    )
    assert {one.name for one in program_of(text).parameters} == {"n", "i_thread"}


def test_a_variable_keeps_the_name_of_another():
    text = (
        "void f(int n, int i_block, int a[n]) { meta_schedule meta_block(i_block) { "
        "meta_for (int i = 0; i < n; i++) a[i] = i_block; } }"
    )
    program = program_of(text)
    assert program.grid[0].var not in ("i_block", "i")
    assert {one.name for one in program.parameters} == {"n", "i_block"}
