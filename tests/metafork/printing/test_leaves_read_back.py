"""A printed leaf reads back to the program it was printed from, mapping included."""

from pathlib import Path

import pytest
from msgspec.structs import fields

from metafork import optimize
from metafork.comprehensive.scheduled import scheduled_unit
from metafork.frontend import parse
from metafork.ir.mapping import Layout
from metafork.ir.marks import results_of
from metafork.ir.messages.diagnostics import DiagnosticsError
from metafork.ir.messages.source import Source
from metafork.printing.metafork_text import metafork_text
from tests.sampling import sampled

EXAMPLES = Path(__file__).parents[3] / "examples"
TILES = """
void f(int n, int B, float x[n][n], float y[n][n]) {
  int m = n / B;
  %s
  meta_schedule cache(x) {
    meta_for (int i = 0; i < m; i++)
      meta_for (int j = 0; j < m; j++)
        meta_for (int u = 0; u < B; u++)
          meta_for (int v = 0; v < B; v++)
            y[j * B + u][i * B + v] = x[i * B + v][j * B + u];
  }
}
"""


def read(text):
    return scheduled_unit(parse(Source("read.mf", text))).schedules[0].program


@pytest.mark.parametrize("name", sampled(["aos", "jacobi1d", "blur", "matmul", "transpose"], 2))
@pytest.mark.parametrize("order", ["paper", "cost"])
@pytest.mark.sampled(1)
def test_leaves_of_examples(name, order):
    strategies, counters = ["+swizzle", "+thread_striding"], ["+bank_degree"]
    result = optimize(EXAMPLES / f"{name}.mf", strategies=strategies, counters=counters, order=order)
    mappings = set()
    for variant in (one for tree in result.schedules for leaf in tree.leaves for one in leaf.variants):
        program = variant.version.program
        again = read(metafork_text(program))
        for field in fields(program):
            if field.name not in ("name", "span"):
                assert getattr(again, field.name) == getattr(program, field.name), (variant.kernel, field.name)
        mappings.add((program.mapping, program.striding, program.body))
    assert len(mappings) > 1 or (name, order) == ("jacobi1d", "cost")  # it is one kernel then


def test_every_item_is_read():
    program = read(
        TILES % "#pragma metafork schedule(coarsen(u, 8); coarsen(v, 2); lay_out(x, xor3); vectorize(); stages(2))"
    )
    assert results_of(program) == (8, 2)
    assert (program.mapping.wide, program.mapping.stages) == (True, 2)
    assert program.mapping.layouts == (("x", Layout("row", 3)),)
    assert (program.mapping.cached, program.mapping.decided) == (("x",), True)
    again = read(metafork_text(program))
    assert (again.mapping, again.body) == (program.mapping, program.body)


def test_other_pragmas_mean_nothing():
    assert read(TILES % "#pragma omp parallel").mapping.stages == 1
    assert read(TILES % "#pragma metafork schedule(stages(2))\n  m = n / B;").mapping.stages == 1


@pytest.mark.parametrize(
    ("items", "code", "reason"),
    [
        ("stages(1)", "MF0602", "count is 2, not 1"),
        ("vectorize(2)", "MF0602", "`2` has no place in `vectorize()`"),
        ("lay_out(x, twisted)", "MF0602", "form is one of rows, padded, padded2, padded4, xor"),
        ("lay_out(y, xor)", "MF0601", "`y` is not in shared memory"),
        ("transpose(q)", "MF0601", "there is no array `q`"),
        ("uncache(y)", "MF0601", "`y` does not go through shared memory"),
    ],
)
def test_what_does_not_fit_is_refused(items, code, reason):
    text = TILES % f"#pragma metafork schedule({items})"
    with pytest.raises(DiagnosticsError) as error:
        read(text)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.code == code
    assert reason in diagnostic.message
