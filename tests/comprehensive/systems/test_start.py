from msgspec.structs import replace

from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import Verdict
from metafork.comprehensive import registry
from metafork.comprehensive.options import machine_limits, machine_values
from metafork.comprehensive.systems.start import identifiers, machine_symbols, start_of
from metafork.comprehensive.systems.systems import Systems
from metafork.evaluators.multiple import Multiple
from metafork.frontend import parse
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.messages.source import Source
from metafork.ir.program import Var

TEXT = """
void f(int N, int T, int B, float a[N][N], float R) {
  assert(B <= 64);
  int dim = N / B;
  for (int t = 0; t < T; t++)
    meta_schedule {
      meta_for (int i = 0; i < dim; i++)
        meta_for (int j = 0; j < B; j++)
          a[0][i * B + j] = a[1][i * B + j] * R; /* Z "RB" */
    }
}
"""


def symbol(name):
    return Polynomial.symbol(name)


def start(fixed=None):
    counters = registry.counters(["threads_per_block", "shared_memory"])
    [schedule] = parse(Source("f.mf", TEXT)).schedules
    return start_of(schedule.program, counters, identifiers(TEXT), fixed)


def test_identifiers_are_those_outside_of_comments_and_strings():
    assert identifiers('int a; /* b */ "c" // d\n e1') == {"int", "a", "e1"}


def test_machine_symbols_give_way_to_names_of_the_input():
    assert machine_symbols(["T", "T_", "Z"], {"T", "Z_"}) == {"T": "T_", "T_": "T__", "Z": "Z"}
    begin = start()
    assert begin.machine["threads_per_block"] == "T_"
    assert begin.machine["registers_per_thread"] == "R_"
    assert begin.machine["shared_words"] == "Z"
    assert begin.limit("T") == symbol("T_")


def test_what_start_implies():
    systems = Systems(start())
    for goal in (
        at_most(0, symbol("N")),
        at_most(1, symbol("B")),
        at_most(1, symbol("dim")),
        at_most(symbol("B"), 64),
        at_most(symbol("B"), symbol("block_dim_x")),
        at_most(symbol("dim") * symbol("B"), symbol("N")),
        at_most(0, symbol("RB")),
    ):
        assert systems.implies((), goal) is Verdict.YES, goal
    assert systems.implies((), at_most(symbol("B"), symbol("T_"))) is Verdict.NO


def test_the_target_of_a_ratio_is_at_most_1():
    [schedule] = parse(Source("f.mf", TEXT)).schedules
    ratio = Multiple(Var("B", ScalarType.INT), 4)
    for fixed, bounded in ((None, [at_most(symbol("M"), 1)]), ({"M": 1}, [])):
        begin = start_of(schedule.program, [ratio, *registry.counters(["global_loads"])], identifiers(TEXT), fixed)
        assert [one for one in begin.constraints if {"M", "L"} & one.left.symbols] == bounded


def test_a_range_of_machines_bounds_the_limits_that_differ():
    begin = start(machine_limits("sm_80..sm_120"))
    assert begin.fixed["T_"] == 1024
    assert begin.unknown_machine == ("Z",)
    assert {at_most(25344, symbol("Z")), at_most(symbol("Z"), 58112)} <= set(begin.constraints)
    assert start(machine_limits("sm_80..sm_120,Z=100")).fixed["Z"] == 100
    assert start(machine_limits("sm_80..sm_80")) == start(machine_values("sm_80"))


def test_a_fixed_machine_has_numbers():
    begin = start(machine_values("sm_80"))
    assert begin.fixed["T_"] == 1024
    assert begin.unknown_machine == ()
    assert begin.limit("Z").constant_value() == begin.fixed["Z"]
    assert at_most(symbol("B"), 1024) in begin.constraints
    partly = start(machine_values("T=256"))
    assert dict(partly.fixed) == {"T_": 256}
    assert "Z" in partly.unknown_machine


def test_the_machine_has_the_dimensions_of_the_blocks():
    [schedule] = parse(Source("f.mf", TEXT)).schedules
    for program, dimensions in ((schedule.program, ["block_dim_x"]), (replace(schedule.program, body=()), [])):
        machine = start_of(program, registry.counters(["threads_per_block"])).machine
        assert [name for name in machine if name.startswith("block_dim")] == dimensions
