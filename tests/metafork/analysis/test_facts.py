import pytest

from metafork.algebra.polynomial import Polynomial, at_most, less_than
from metafork.analysis.counted_loops import counted_loop
from metafork.analysis.facts import program_facts
from metafork.analysis.values.conditions import meaning
from metafork.analysis.values.scope import Scope, fresh_name
from metafork.ir.arithmetic.types import ScalarType
from metafork.ir.program import Cast, For, IntConst, Var, binary, unary, walk_statements
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE, program

N, B, s, dim = (Polynomial.symbol(name) for name in ("N", "B", "s", "dim"))


def schedule(derived="int dim = N / B;", extent="dim", body="b[i * B + j] = a[i * B + j];", parameters="int N, int B"):
    return program(f"""
void f({parameters}, const int a[N], int b[N]) {{
  {derived}
  meta_schedule {{
    meta_for (int i = 0; i < {extent}; i++)
      meta_for (int j = 0; j < B; j++) {{
        {body}
      }}
  }}
}}""")


def test_facts_of_jacobi():
    facts = program_facts(program(JACOBI))
    assert facts.values["dim"] == dim
    assert [(d.name, d.kind, d.operands) for d in facts.derived] == [("dim", "floor", (N - 2, s * B))]
    for constraint in (at_most(1, dim), at_most(1, B), at_most(1, s * B), at_most(0, N - 2), at_most(1, s)):
        assert constraint in facts.constraints
    assert less_than(N - 2, dim * s * B + s * B) in facts.constraints
    assert at_most(dim * s * B, N - 2) in facts.constraints
    assert facts.opaque == frozenset()


def test_assertions_join_the_facts():
    b0, ub1 = Polynomial.symbol("B0"), Polynomial.symbol("ub1")
    assert at_most(b0, ub1 * s) in program_facts(program(MATMUL)).constraints


def test_equal_quotients_have_one_symbol():
    facts = program_facts(program(TRANSPOSE))
    assert [d.name for d in facts.derived] == ["dim0", "dim1"]
    # n/B0 is the trip count of a loop too, and dim0 by another name
    assert [d.name for d in program_facts(program(MATMUL)).derived] == ["dim0", "dim1"]


def test_a_quotient_without_a_name_gets_one_that_follows_from_its_definition():
    names = [d.name for d in program_facts(program(MATADD)).derived]
    assert names == ["dim0", "dim1", "N_over_2"]
    assert fresh_name("floor", (N, Polynomial.constant(2))) == "N_over_2"
    assert fresh_name("maximum", (N, B)) == "N_max_B"
    assert fresh_name("floor", (N + 1, B)) != fresh_name("floor", (N - 1, B))
    assert fresh_name("floor", (N, 2 * B)).isidentifier()
    assert fresh_name("floor", (Polynomial.symbol("a_over_b"), Polynomial.symbol("c"))) != fresh_name(
        "floor", (Polynomial.symbol("a"), Polynomial.symbol("b_over_c"))
    )


def test_a_long_name_gives_way_to_its_kind():
    for letters, start in ((10, "n" * 10 + "_plus_1_over_B_"), (11, "floor_")):
        found = fresh_name("floor", (Polynomial.symbol("n" * letters) + 1, B))
        assert found.startswith(start)
        assert len(found.removeprefix(start)) == 6


def test_the_extremum_of_one_is_itself():
    scope = Scope({}, ("N", "B"))
    assert scope.extremum("maximum", (N, N)) == N
    assert scope.derived == []
    assert scope.extremum("maximum", (N, B)) == scope.extremum("maximum", (B, N, B))
    assert len(scope.derived) == 1


def test_unsigned_arithmetic_is_congruent_to_its_polynomial_even_where_it_wraps():
    scope = Scope({"i": N, "u": B}, ("N", "B"), closed=True)
    i, u = Var("i", ScalarType.INT), Var("u", ScalarType.UNSIGNED_INT)
    for op, value in (("-", B - N), ("+", B + N), ("*", B * N)):
        assert scope.congruent(binary(op, u, Cast(u.type, i))) == value
    assert scope.polynomial(binary("-", u, Cast(u.type, i))) is None
    assert scope.congruent(unary("-", u)) == -B
    assert scope.congruent(binary("-", i, IntConst(3))) == N - 3


def test_what_is_computed_before_the_schedule_in_signed_types_has_not_left_them():
    facts = program_facts(program(JACOBI))
    assert at_most(N - 2, 2**31 - 1) in facts.limits
    assert at_most(s * B, 2**31 - 1) in facts.limits
    unsigned = program_facts(program(JACOBI.replace("int T, int N", "int T, unsigned N")))
    assert at_most(N - 2, 2**31 - 1) not in unsigned.limits


def test_derived_scalars_that_are_polynomials_have_no_symbol():
    facts = program_facts(schedule("int twice = 2 * B; int dim = N / twice + 1 - 1;"))
    assert facts.values["twice"] == 2 * B
    assert facts.values["dim"].symbols == {facts.derived[0].name}


def test_derived_scalars_without_a_polynomial_are_opaque():
    facts = program_facts(schedule("int dim = N > B ? N / B : 1;"))
    assert facts.opaque == {"dim"}
    assert at_most(0, dim) in facts.constraints
    assert at_most(1, dim) in facts.constraints  # the trip count of the grid loop


def test_a_narrow_derived_scalar_is_opaque():
    assert program_facts(schedule("short dim = N / B;")).opaque == {"dim"}
    assert program_facts(schedule("unsigned char dim = N * B;")).opaque == {"dim"}


def test_remainders_are_polynomials_in_their_quotient():
    facts = program_facts(program(JACOBI))
    scope = Scope.of(facts)
    # the parity of t is an int by itself: 0 <= t and 2 is positive, so its quotient needs no further fact
    condition = program(JACOBI).body[0].body[0].body[-1].condition
    value = scope.polynomial(condition)
    t = Polynomial.symbol("t")
    assert value == t - 2 * Polynomial.symbol("t_over_2")
    assert [d.operands for d in scope.derived if d.name == "t_over_2"] == [(t, Polynomial.constant(2))]


def test_a_closed_scope_takes_no_quotient_that_needs_a_fact():
    scope = Scope({"N": N, "B": B}, ["N", "B"], closed=True)
    assert scope.quotient("floor", N, B) is None
    assert scope.quotient("floor", N - 1, Polynomial.constant(2)) is None
    assert scope.quotient("floor", N, Polynomial.constant(2)) == Polynomial.symbol("N_over_2")
    assert scope.quotient("floor", 2 * N * B, Polynomial.constant(2)) == N * B
    assert scope.quotient("floor", N * B, B) is None  # B may be 0
    assert scope.quotient("floor", N, Polynomial()) is None


def test_an_open_scope_keeps_the_divisors_of_exact_quotients():
    scope = Scope({"N": N, "B": B}, ["N", "B"])
    assert scope.quotient("floor", N * B, B) == N
    assert scope.divisors == [B]


def test_loop_variables_never_enter_a_quotient():
    scope = Scope({"N": N, "i": Polynomial.symbol("i")}, ["N"])
    assert scope.quotient("floor", Polynomial.symbol("i"), Polynomial.constant(2)) is None


def index(text, declared="int"):
    """Return the expression that initialises ``p`` in thread code."""
    body = schedule(body=f"{declared} p = {text}; b[i * B + j] = a[0] + p;").body[0].body
    return body[0]


@pytest.mark.parametrize(
    ("text", "declared", "known"),
    [
        ("i * B + j", "int", True),
        ("i * B + j - 1", "int", True),
        ("-i", "int", True),
        ("i << 2", "int", True),
        ("i * B + j", "unsigned", True),
        ("i * B + j - 1", "unsigned", False),
        ("i * B + j", "short", False),
        ("i * B + j", "unsigned char", False),
        ("(unsigned)i * B", "long", True),
        ("(unsigned)i - 1", "long", False),
        ("(unsigned)(i - 1)", "long", False),
        ("(i - 1) + 1u", "long", False),
        ("(short)(i * B)", "int", False),
        ("i > 2 ? i : 2", "int", False),
        ("i & 3", "int", False),
        ("i << N", "int", False),
        ("i / 2", "int", False),
        ("i % 2", "int", False),
        ("N % 2 + j", "int", True),
        ("~i", "int", False),
        ("2.5f * i", "int", False),
    ],
)
def test_which_integer_expressions_are_polynomials(text, declared, known):
    facts = program_facts(schedule())
    scope = Scope.of(facts)
    for name, trips in (("i", dim), ("j", B)):
        scope.values[name] = Polynomial.symbol(name)
        scope.ranges.enter(name, trips)
    stmt = index(text, declared)
    assert (scope.converted(stmt.value, stmt.type) is not None) == known


def test_comparisons_are_made_in_the_common_type():
    scope = Scope({"N": N, "i": Polynomial.symbol("i")}, ["N"])
    stmt = index("i - 1 < N ? 1 : 0")
    assert meaning(scope, stmt.value.condition).conjunction == (less_than(Polynomial.symbol("i") - 1, N),)
    assert meaning(scope, stmt.value.condition, truth=False).conjunction == (at_most(N, Polynomial.symbol("i") - 1),)
    unsigned = index("i - 1 < (unsigned)N ? 1 : 0")
    assert meaning(scope, unsigned.value.condition).conjunction is None


def test_conditions():
    scope = Scope({"N": N, "B": B}, ["N", "B"])

    def condition(text):
        return index(f"{text} ? 1 : 0").value.condition

    assert meaning(scope, condition("N < B && B <= 4")).conjunction == (less_than(N, B), at_most(B, 4))
    assert meaning(scope, condition("N < B || B <= 4")).conjunction is None
    assert meaning(scope, condition("N < B || B <= 4"), truth=False).conjunction == (at_most(B, N), less_than(4, B))
    assert meaning(scope, condition("!(N < B)")).conjunction == (at_most(B, N),)
    assert meaning(scope, condition("N != B")).conjunction is None
    assert meaning(scope, condition("N < B && N != B")).conjunction is None
    assert meaning(scope, condition("N < B && N != B")).constraints == (less_than(N, B),)
    assert meaning(scope, condition("N < B || N != B")).constraints == ()


def loops(text):
    return [
        stmt
        for stmt in walk_statements(schedule(body=text, parameters="int N, int B, int m").body)
        if isinstance(stmt, For)
    ]


def test_what_is_at_least_one_where_a_loop_runs():
    scope = Scope({"m": Polynomial.symbol("m")}, ["m"])
    m = Polynomial.symbol("m")

    def spans(text):
        view = counted_loop(loops(f"int x = 0; int k; {text} x += 1; b[i * B + j] = x;")[0])
        return None if view is None else [scope.polynomial(span) for span in view.spans()]

    assert spans("for (int k = 0; k < m; k++)") == [m]
    assert spans("for (int k = 2; k < m; k++)") == [m - 2]
    assert spans("for (int k = 2; k <= m; ++k)") == [m - 1]
    assert spans("for (int k = 2; m >= k && k < 7; ++k)") == [m - 1, Polynomial.constant(5)]
    assert spans("for (k = 0; k < m; k += 1)") == [m]
    assert spans("for (int k = 0; k < m; k += 2)") == [m]
    assert spans("for (int k = m; k > 0; k--)") == [m]
    assert spans("for (int k = m; k >= 2; k = k - 3)") == [m - 1]
    assert spans("for (int k = 0; k < m; k *= 2)") is None
    assert counted_loop(loops("for (int k = 0; k < m; k++) { k = k + 1; b[i * B + j] = k; }")[0]) is None


def test_types_of_parameters_do_not_matter_to_what_is_known():
    facts = program_facts(schedule(parameters="unsigned long N, unsigned B"))
    assert facts.values["dim"] == dim
    assert ScalarType.INT.integer
    assert binary("+", index("i").value, index("j").value).type is ScalarType.INT


def test_a_dividend_that_is_never_positive_joins_no_system():
    text = schedule(body="for (int k = 0; k < t; k++) b[i * B + j] += k * (-t / 2);", parameters="int N, int B, int t")
    facts = program_facts(text)
    t = Polynomial.symbol("t")
    assert at_most(0, -t) not in facts.constraints
    assert Scope({"t": t}, {"t": t}).quotient("floor", -t, Polynomial.constant(2)) is None
