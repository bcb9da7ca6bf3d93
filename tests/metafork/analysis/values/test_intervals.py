import pytest

from metafork.analysis.values.intervals import loop_intervals, never_grows
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.ir.program import For, walk_statements


def loop_of(step, declared="int", body=""):
    text = (
        f"void f(int n, int B, float a[n]) {{ meta_schedule {{ meta_for (int i = 0; i < 1; i++) {{ int c = 0; "
        f"for ({declared} h = 5; h > c; {step}) {{ {body} meta_for (int t = 0; t < B; t++) a[t] = 1; }} }} }} }}"
    )
    program = parse(Source("f.mf", text)).schedules[0].program
    (loop,) = (stmt for stmt in walk_statements(program.body) if isinstance(stmt, For))
    assert loop.step is not None
    return (*loop.body, loop.step)


@pytest.mark.parametrize(
    ("step", "declared", "body", "start", "bounds"),
    [
        ("h *= 2", "int", "", (2, 2), (2, None)),
        ("h /= 2", "int", "", (5, 5), (0, 5)),
        ("h = (h + 1) / 2", "int", "", (1, None), (1, None)),
        ("h = 1 - h", "int", "", (0, 0), (0, 1)),
        ("h ^= 1", "int", "", (1, 1), (0, 1)),
        ("h -= 1", "int", "", (5, 5), (None, 5)),
        ("h *= 2", "unsigned", "", (1, 1), (0, None)),
        ("h = h - n", "int", "", (None, None), (None, None)),
        ("h = h / 2 + 1", "int", "", (5, 5), (1, 5)),
        ("h = c > 3 ? 7 : 1", "int", "", (2, 2), (1, None)),
        ("h = c > 3 ? 1 : h", "int", "", (2, 2), (1, 2)),
        ("h = c > 3 ? n : 1", "int", "", (2, 2), (None, None)),
        ("h /= 2", "int", "if (c > 3) h = -1;", (5, 5), (None, None)),
    ],
)
def test_bounds_hold_after_any_run_of_the_loop(step, declared, body, start, bounds):
    loop = loop_of(step, declared, body)
    assert loop_intervals(loop, {"h": start}, lambda _: (None, None))["h"] == bounds


def test_what_never_grows():
    assert never_grows("h", loop_of("h /= 2"))
    assert never_grows("h", loop_of("h >>= 1"))
    assert not never_grows("h", loop_of("h = (h + 1) / 2"))
    assert not never_grows("h", loop_of("h /= 2", body="if (c > 3) h = n;"))
