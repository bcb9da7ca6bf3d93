import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metafork.analysis.cfg.available import Changes, dominators, evaluating, sites_of, with_evaluating
from metafork.analysis.cfg.source_cfg import Select, UniformPath, build, launch_paths, successors, uniform_paths
from metafork.ir.program import If, IntConst, Var, binary, walk_statements
from metafork.ir.rewriting import (
    fresh_name,
    joining_scope,
    names_of,
    substitute_body,
    variables,
)
from metafork.printing.expressions import expression
from metafork.printing.metafork_text import metafork_text
from metafork.printing.statements import statements
from tests.metafork.interpreter import Interpreter, UndefinedBehaviourError, program, results
from tests.metafork.programs import JACOBI, MATADD, MATMUL, TRANSPOSE
from tests.metafork.random_code import BODIES, nest

PAPER = [JACOBI, MATADD, MATMUL, TRANSPOSE]


def texts(program):
    return [line.strip() for line in metafork_text(program).splitlines()]


def shown(path):
    return [(expression(condition), truth) for condition, truth in path.conditions]


class TestRoundTrip:
    @pytest.mark.parametrize("text", PAPER)
    def test_the_papers_programs(self, text):
        before = program(text)
        assert build(before).program() == before

    @pytest.mark.parametrize(
        "body",
        [
            "",
            "for (;;) { break; }",
            "while (j < N) { if (j == 3) { break; } else if (j == 4) { continue; c[0] = 1; } c[1] = 2; }",
            "for (int z = 0; z < N; z++) { continue; }",
            "if (j) { } else { c[0] = 1; }",
            "int z; for (z = 1; z < 3; z += 2) { int w = z; c[w] = z; } c[z] = 0;",
        ],
    )
    def test_awkward_code(self, body):
        before = program(nest(f"c[5] = N; {body}"))
        assert build(before).program() == before

    def test_phases_and_block_level_code(self):
        before = program("""
        void f(int n, int B, float a[n]) {
          int d = n / B;
          meta_schedule {
            meta_for (int i = 0; i < d; i++) {
              float tile[B];
              for (int k = 0; k < 3; k++) {
                meta_for (int j = 0; j < B; j++) tile[j] = a[i*B + j];
                if (k > 1) { meta_for (int j = 0; j < B; j++) a[i*B + j] = tile[B - 1 - j]; }
              }
            }
          }
        }
        """)
        cfg = build(before)
        assert cfg.program() == before
        assert not any(any(isinstance(s, If) for s in block.statements) for block in cfg.blocks)

    @settings(max_examples=50, deadline=None)
    @given(BODIES)
    def test_random_code(self, body):
        before = program(nest("int x = 3; int y = j; " + body))
        assert build(before).program() == before

    def test_a_replaced_condition_comes_back(self):
        cfg = build(program(nest("if (j < N) { c[0] = 1; }")))
        number, block = next((n, b) for n, b in enumerate(cfg.blocks) if isinstance(b.terminator, Select))
        changed = with_evaluating(block, [*block.statements, Var("i")])
        assert "if (i) {" in texts(cfg.with_block(number, changed).program())


class TestAnalyses:
    @settings(max_examples=30, deadline=None)
    @given(BODIES)
    def test_dominators_are_the_blocks_without_which_there_is_no_way(self, body):
        cfg = build(program(nest("int x = 3; int y = j; " + body)))
        found = dominators(cfg)

        def reached(without):
            seen, waiting = set(), [0]
            while waiting:
                number = waiting.pop()
                if number in seen or number == without:
                    continue
                seen.add(number)
                waiting += successors(cfg.blocks[number].terminator)
            return seen

        for number in reached(None):
            expected = {other for other in range(len(cfg.blocks)) if number not in reached(other)}
            assert found[number] == expected

    @pytest.mark.parametrize(
        ("body", "changed"),
        [
            ("int x = j; c[x + 1] = 1; if (x < i) { c[x + 2] = 1; } else { c[x + 3] = 1; } c[0] = N % 5;", set()),
            ("int x = j; c[x + 1] = i + N; if (i) { x = 2; } c[0] = N % 5;", {"x"}),
            ("int x = j; c[0] = x + 1; while (x < N) { c[1] = N % 5; x++; }", {"x"}),
            ("int x = j; if (x < i) { c[x + 1] = 1; } c[0] = N % 5;", None),
            ("int x = j; while (x < N) { x++; c[x + 1] = 1; if (i) { c[0] = N % 5; } }", set()),
        ],
    )
    def test_what_may_change_between_two_blocks(self, body, changed):
        cfg = build(program(nest(body)))
        lines = [(number, stmt) for number, block in enumerate(cfg.blocks) for stmt in evaluating(block)]
        sites = {expression(site.expr): number for number, stmt in lines for site in sites_of(stmt)}
        assert Changes(cfg).between(sites["x + 1"], sites["N % 5"]) == changed

    def test_reads_of_arrays_are_no_sites(self):
        cfg = build(program(nest("c[0] = a[j] + a[i];")))
        assert not any(sites_of(stmt) for block in cfg.blocks for stmt in evaluating(block))


class TestUniformPaths:
    def test_figure_7_has_two_paths(self):
        paths = uniform_paths(program(JACOBI))
        assert [shown(path) for path in paths] == [[("t % 2", True)], [("t % 2", False)]]
        for path, statement in zip(
            paths,
            ["a[p1] = (a[np] + a[np1] + a[np2]) / 3;", "a[np1] = (a[p] + a[p1] + a[p2]) / 3;"],
            strict=True,
        ):
            assert not any(isinstance(stmt, If) for stmt in walk_statements(path.program.body))
            assert statement in texts(path.program)

    @pytest.mark.parametrize("text", [MATADD, MATMUL, TRANSPOSE])
    def test_without_uniform_conditions_there_is_one_path(self, text):
        before = program(text)
        (path,) = uniform_paths(before)
        assert path.conditions == ()
        assert path.program == before

    def test_spellings_of_one_condition_are_one(self):
        body = "if (N % 2 == 0) c[0] = 1; if (!(N % 2)) c[1] = 1; if (N % 2) c[2] = 1;"
        body += "int h = N % 2; if (h != 0) c[3] = 1;"
        paths = uniform_paths(program(nest(body)))
        assert [shown(path) for path in paths] == [[("N % 2", True)], [("N % 2", False)]]
        assert [line for line in texts(paths[0].program) if line.startswith("c")] == ["c[2] = 1;", "c[3] = 1;"]

    def test_orders_are_turned_one_way(self):
        paths = uniform_paths(program(nest("if (N > s) c[0] = 1; if (N <= s) c[1] = 1; if (s >= N) c[2] = 1;")))
        assert [shown(path) for path in paths] == [[("s < N", True)], [("s < N", False)]]

    @pytest.mark.parametrize(
        "body",
        [
            "if (j < N) c[0] = 1;",
            "if (c[0] < N) c[1] = 1;",
            "int h = N; h += 1; if (h < 3) c[0] = 1;",
            "for (int z = 0; z < N; z++) { if (z < s) c[0] = 1; }",
            "if (j < 1) { if (N / s > 2) c[0] = 1; }",
            "for (int z = 0; z < 2; z++) { if (N % s) c[0] = 1; }",
            "if (j < 1) { if (N << s) c[0] = 1; }",
        ],
    )
    def test_what_varies_or_may_be_undefined_is_left(self, body):
        before = program(nest(body))
        assert [path.program for path in uniform_paths(before)] == [before]

    def test_a_nested_condition_is_asked_only_where_it_stands(self):
        paths = uniform_paths(program(nest("if (s > 0) { if (N / s > 3) c[0] = 1; else c[1] = 1; } else c[2] = 1;")))
        assert [shown(path) for path in paths] == [
            [("0 < s", True), ("3 < N / s", True)],
            [("0 < s", True), ("3 < N / s", False)],
            [("0 < s", False)],
        ]

    @pytest.mark.parametrize("condition", ["2 == 3", "0", "3 < 2 && N > 2"])
    def test_a_condition_on_numbers_makes_no_path_that_nothing_takes(self, condition):
        (path,) = uniform_paths(program(nest(f"if ({condition}) c[0] = 1; else c[1] = 2;")))
        assert path.conditions == ()
        assert path.program.body == program(nest("c[1] = 2;")).body

    def test_declarations_of_a_branch_hide_nothing(self):
        body = "int x = j; if (N > 2) { int z = 5; { c[z] = 1; } } int z = x; c[z + 10] = 2;"
        before = program(nest(body))
        for path in uniform_paths(before):
            point = {"N": 4 if path.conditions[0][1] else 1, "s": 1, "B": 1}
            assert results(path.program, point, 3) == results(before, point, 3)

    def test_too_many_paths_are_none(self):
        body = " ".join(f"if (N % {n} == 1) c[{n}] = 1;" for n in range(2, 6))
        before = program(nest(body))
        (path,) = uniform_paths(before)
        assert path.program == before
        assert path.conditions == ()
        assert len(uniform_paths(before, limit=16)) == 16

    def test_block_level_conditions_are_resolved(self):
        text = """
        void f(int n, int B, float a[n]) {
          int d = n / B;
          meta_schedule {
            meta_for (int i = 0; i < d; i++) {
              int odd = i % 2;
              if (odd) { meta_for (int j = 0; j < B; j++) a[i*B + j] = 1; }
              else { meta_for (int j = 0; j < B; j++) a[i*B + j] = 2; }
            }
          }
        }
        """
        paths = uniform_paths(program(text))
        assert [shown(path) for path in paths] == [[("i % 2", True)], [("i % 2", False)]]
        assert "a[i * B + j] = 1;" in texts(paths[0].program)
        assert "a[i * B + j] = 2;" not in texts(paths[0].program)
        (launch,) = launch_paths(program(text))
        assert launch == UniformPath((), program(text))

    def test_blocks_of_one_launch_share_what_parameters_decide(self):
        before = program(nest("if (s > 0) c[0] = 1; if (i == s) c[1] = 1;"))
        assert [shown(path) for path in launch_paths(before)] == [[("0 < s", True)], [("0 < s", False)]]
        for path in launch_paths(before):
            (guard,) = (stmt for stmt in walk_statements(path.program.body) if isinstance(stmt, If))
            assert guard.condition == binary("==", Var("i"), Var("s"))
        assert len(uniform_paths(before)) == 4

    @settings(max_examples=30, deadline=None)
    @given(BODIES, st.sampled_from([0, 1, 2, 5, 1000]), st.sampled_from([1, 3]))
    @pytest.mark.slow
    def test_one_path_is_taken_and_computes_the_same(self, body, n, s):
        guards = "if (N % 3 == 1) { int x = 2; c[x] = 7; } if (s < N) { c[9] = x; } else if (N % 3 == 1) c[8] = y;"
        before = program(nest("int x = 3; int y = j; " + body + guards))
        point = {"N": n, "s": s, "B": 1}
        try:
            expected = results(before, point, 2)
        except UndefinedBehaviourError:
            assume(False)
        taken = [path for path in uniform_paths(before) if holds(path, point)]
        assert len(taken) == 1
        assert results(taken[0].program, point, 2) == expected


def holds(path, point):
    """Evaluate the conditions that read no grid variable, in order, as a block would."""
    interpreter = Interpreter(path.program, {}, None)
    for condition, truth in path.conditions:
        assume(variables(condition) <= point.keys())
        if bool(interpreter.value(condition, dict(point))) != truth:
            return False
    return True


class TestSubstitution:
    def test_an_inner_declaration_hides_the_replaced_name(self):
        (phase,) = program(nest("c[N] = 1; for (int z = 0; z < N; z++) { c[z + N] = 2; }")).body
        new = substitute_body(phase.body, {"N": IntConst(4), "z": IntConst(9)}, ())
        assert statements(new, 0) == ["c[4] = 1;", "for (int z = 0; z < 4; z++) {", "  c[z + 4] = 2;", "}"]

    def test_a_capturing_declaration_is_renamed(self):
        (phase,) = program(nest("for (int z = 0; z < N; z++) { c[z] = N; }")).body
        new = substitute_body(phase.body, {"N": Var("z")}, ())
        assert statements(new, 0) == ["for (int z1 = 0; z1 < z; z1++) {", "  c[z1] = z;", "}"]

    def test_an_assigned_name_needs_a_variable(self):
        (phase,) = program(nest("int x = 1; while (x < N) { x += 1; c[x] = 0; }")).body
        with pytest.raises(ValueError, match="assigned"):
            substitute_body(phase.body[1:], {"x": IntConst(1)}, ())
        renamed = substitute_body(phase.body[1:], {"x": Var("u")}, ())
        assert statements(renamed, 0) == ["while (u < N) {", "  u += 1;", "  c[u] = 0;", "}"]

    def test_joining_a_scope_renames_from_the_declaration_on(self):
        (phase,) = program(nest("c[j] = 1; int z = j; c[z] = z;")).body
        taken = {"z1"}
        new = joining_scope(phase.body, {"z"}, taken)
        assert statements(new, 0) == ["c[j] = 1;", "int z2 = j;", "c[z2] = z2;"]
        assert taken == {"z1", "z2"}

    def test_names(self):
        assert {"i", "j", "c", "N"} <= names_of(program(nest("c[j] = N;")))
        assert fresh_name("x", {"x", "x1"}) == "x2"
        assert fresh_name("y", {"x"}) == "y"
