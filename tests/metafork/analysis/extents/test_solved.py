"""Extents go into a parsed file: what each schedule and each function gets, and what it asks for then."""

import pytest

from metafork import frontend
from metafork.comprehensive import reading
from metafork.ir.invariants import check_program
from metafork.ir.messages.source import Source
from metafork.printing.expressions import expression

HEAD = "#include <stdlib.h>\nvoid f(int n, int m, int B, float *x, float *y, const int *at) { BODY }\n"


def loop(body, count="n"):
    return f"meta_schedule meta_block(B) {{ meta_for (int i = 0; i < {count}; i++) {{ {body} }} }} "


def unit_of(body, head=HEAD, reassociate=False):
    unit = reading.parse(Source("f.mf", head.replace("BODY", body)), reassociate=reassociate)
    for schedule in unit.schedules:
        check_program(schedule.program)
    return unit


def of_schedules(unit):
    """The extents of each schedule's arrays; `?` where none is known."""
    return [
        {one.name: "?" if one.endless else expression(one.extents[0]) for one in schedule.program.arrays}
        for schedule in unit.schedules
    ]


def of_function(unit):
    return {one.name: expression(one.array.extents[0]) for one in unit.functions[0].values if one.array is not None}


def test_a_file_is_parsed_once(monkeypatch):
    parsed = []

    def parse(source, **options):
        parsed.append(source)
        return once(source, **options)

    once = frontend.parse
    monkeypatch.setattr(frontend, "parse", parse)
    assert of_function(unit_of(loop("x[i] = y[i];") + "x[0] = 1;")) == {"x": "n", "y": "n"}
    assert len(parsed) == 1


CASES = {
    "a local has a parameter's name": (
        "{ int n = m / 2; " + loop("x[i] = y[i];") + "} " + loop("x[i] = 1;"),
        [{"x": "n", "y": "m / 2"}, {"x": "n"}],
    ),
    "the second names what the first does not": (
        loop("x[i] = y[i];") + loop("for (int j = 0; j < m; j++) x[n + j] = 2;"),
        [{"x": "n", "y": "n"}, {"x": "1 <= m ? n + m : 0"}],
    ),
    "the first has a local of such a name": (
        "for (int s = 0; s < m; s++) " + loop("int m = i; x[s * n + m] = y[m];"),
        [{"x": "m * n", "y": "n"}],
    ),
    "memory where accesses say nothing": (
        "float *p = malloc(m * sizeof *p), *q = malloc(9 * sizeof *q); " + loop("p[at[i]] = q[i];"),
        [{"p": "m", "q": "n", "at": "n"}],
    ),
    "one element of a variable": ("float *p = x; " + loop("p[0] = 1;", "1"), [{"p": "1"}]),
    "a pointer that no schedule uses": ("y[3] = 1; " + loop("x[i] = 1;"), [{"x": "n"}]),
}


@pytest.mark.parametrize("name", CASES)
def test_each_schedule_has_the_extents_of_its_own_names(name):
    body, extents = CASES[name]
    assert of_schedules(unit_of(body)) == extents


def test_an_extent_brings_along_what_it_names():
    """`m` is no parameter of the schedule but for the extent, `k` is none of either."""
    body = "assert(m > 2); assert(k > 2); for (int s = 0; s < m; s++) " + loop("x[s * n + i] = 1;")
    head = "#include <assert.h>\n" + HEAD.replace("int m,", "int m, int k,")
    program = unit_of(body, head).schedules[0].program
    assert [one.name for one in program.parameters] == ["n", "m", "B", "s"]
    assert any(expression(one) == "m > 2" for one in program.assumptions)
    assert not any("k" in expression(one) for one in program.assumptions)


def test_what_may_have_changed_is_asked_for_at_run_time():
    body = loop("s += x[i];").replace("meta_for", "meta_reduction(+: s) meta_for")
    unit = unit_of(f"UNKNOWN; float s = 0; {body}", reassociate=True)
    assert {one.entry_values for one in unit.schedules} == {("n", "x")}


OTHER = "void g(int n, int B, float *x, float *y) { " + loop("x[i] = y[2 * i];") + "}\n"
EXCHANGES = {"float *t = x; x = y; y = t;": "", "SWAP": "#define SWAP float *t = x; x = y; y = t;\n"}


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_arrays_that_change_places_have_no_extents_unless_they_have_one(exchange):
    for second, extents in (("y[i]", {"x": "n", "y": "n"}), ("y[2 * i]", {"x": "?", "y": "?"})):
        body = "for (int s = 0; s < m; s++) { " + loop(f"x[i] = {second};") + exchange + "}"
        unit = unit_of(body, EXCHANGES[exchange] + HEAD + OTHER)
        assert of_schedules(unit) == [extents, {"x": "n", "y": "2 * n - 1"}]
        assert len(unit.warnings) == 2 * ("?" in extents.values())
