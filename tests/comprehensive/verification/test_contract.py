"""Points outside of the program's own contract are left out with a hint; data can be given; what never ran is said."""

import json
import re
from functools import partial

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli
from metafork.comprehensive.verification import BuildError, Options, verify
from metafork.comprehensive.verification.contract import contract_text
from metafork.frontend import parse
from metafork.ir.messages.source import Source

QUICK = {"points": 12, "jobs": 2, "optimization": "-O0", "dataflow_seconds": 0}

FREE = """
void pick(int n, int m, int j, int B, const float x[n][m], float y[n]) {
  int d = n / B;
  meta_schedule {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++)
        y[i * B + u] = INDEX;
  }
}
"""
ASSERTED = FREE.replace("int d =", "assert(j < m);\n  int d =").replace("INDEX", "x[i * B + u][j]")

SPARSE = """
void spmv(int n, int nnz, int B, const int row[n + 1], const int col[nnz], const float val[nnz], const float x[n],
          float y[n]) {
  int d = n / B;
  meta_schedule {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++) {
        int p = i * B + u;
        float sum = 0;
        for (int k = row[p]; k < row[p + 1]; k++)
          sum += val[k] * x[col[k]];
        y[p] = sum;
      }
  }
}
"""
MATRIX = """
void spmv_init(int n, int nnz, int B, int row[n + 1], int col[nnz], float val[nnz], float x[n], float y[n]) {
  for (int i = 0; i <= n; i++) row[i] = (int)((long long)i * nnz / n);
  for (int k = 0; k < nnz; k++) col[k] = (7 * k + 3) % n;
}
"""


def verified(text, **options):
    return verify(
        text, counters=("threads_per_block",), strategies=(), options=Options(**QUICK, **options), machine="all"
    )


def hints(found):
    return [note for note in found.notes if "leaves an array" in note]


OUTSIDE = {
    "x[i * B + u][j]": ("x[i * B + u][j]", "add assert(j < m)"),  # in the next row: no allocation is left
    "x[0][m - j]": ("x[0][m - j]", "add assert(0 <= m - j)"),
    "x[0][1000 * j]": ("x[0][1000 * j]", "add assert(1000 * j < m)"),  # beyond every red zone
    "x[j][0] + x[n / j - 1][0]": ("x[j][0]", "add assert(j < n)"),
    "x[i * B + u + j][0]": ("x[i * B + u + j][0]", "add an assert under which 0 <= i * B + u + j && "),
}
"""What is read outside of an array, and what the hint names."""
LOCAL = FREE.replace(
    "    meta_for (int i = 0; i < d; i++)\n", "    meta_for (int i = 0; i < d; i++) {\n      int t[B];\n"
).replace("        y[i * B + u] = INDEX;\n", "      { t[u + j - 1] = u; y[i * B + u] = 1; }\n    }\n")
PROGRAMS = {"asserted": ASSERTED, "local": LOCAL, "sparse": SPARSE} | {
    index: FREE.replace("INDEX", index) for index in OUTSIDE
}


@pytest.fixture(scope="module")
def together():
    """All programs verified as one file; returns the hints and rows of one of them."""
    found = verified(
        "".join(re.sub(r"(?<=void )\w+", rf"\g<0>_{number}", text) for number, text in enumerate(PROGRAMS.values()))
    )
    assert [failure.text() for failure in found.failures] == []

    def of(program):
        schedule = f"input_k{list(PROGRAMS).index(program)}"
        notes = [note for note in hints(found) if note.startswith(f"{schedule}: ")]
        return notes, [row for row in found.rows if row.schedule == schedule]

    return of


@pytest.mark.parametrize("index", OUTSIDE)
def test_a_point_outside_of_the_contract_is_left_out_with_a_hint(together, index):
    notes, rows = together(index)
    access, hint = OUTSIDE[index]
    assert any(f"at {access}: {hint}" in note and "(first: index " in note for note in notes)
    assert rows
    assert all(row.points < 12 and row.points == row.raced_points for row in rows)


def test_with_the_assertion_nothing_is_left_out(together):
    notes, rows = together("asserted")
    assert notes == []
    assert [row.points for row in rows] == [12]


def test_arrays_of_a_block_are_checked_too(together):
    notes, _ = together("local")
    assert any("at t[u + j - 1]" in note for note in notes)


@pytest.mark.slow
def test_what_the_compiler_does_not_accept_is_a_note_and_the_points_run(monkeypatch):
    monkeypatch.setattr("metafork.comprehensive.verification.builds.contract_text", lambda unit: "this is no C")
    found = verified(ASSERTED, races=False)
    assert [row.points for row in found.rows] == [12]
    assert any(note.startswith("indices of the serial run were not checked: ") for note in found.notes)


def test_the_checked_text_names_every_access_once():
    unit = parse(Source("pick.mf", FREE.replace("INDEX", "x[i * B + u][j] + x[j][0]")))
    assert contract_text(unit).count("metafork_inside(") == 5 + 1


@pytest.mark.slow
def test_data_can_be_given(together, tmp_path):
    notes, rows = together("sparse")
    assert notes
    assert all("(--init)" in note for note in notes)
    assert all(row.points < 12 for row in rows)
    init = tmp_path / "matrix.c"
    init.write_text(MATRIX)
    found = verified(SPARSE, init=init)
    assert hints(found) == []
    assert [row.points for row in found.rows] == [row.raced_points for row in found.rows] == [12]


def test_data_that_leave_the_arrays_are_said(tmp_path):
    init = tmp_path / "matrix.c"
    init.write_text(MATRIX.replace("i <= n", "i <= n + 1"))
    found = verified(SPARSE, init=init, races=False)
    assert [row.points for row in found.rows] == [0]
    assert any("heap-buffer-overflow" in note for note in found.notes)


def test_data_for_no_function_of_the_file_is_an_error(tmp_path):
    init = tmp_path / "matrix.c"
    init.write_text(MATRIX.replace("spmv_init", "other_init"))
    with pytest.raises(BuildError, match="defines no function that fills arrays: spmv_init"):
        verified(SPARSE, init=init)


NEVER = """
void never(int n, int B, float a[n]) {
  int d = n / B;
  int more = n;
  more++;
  if (more < 1)
    meta_schedule {
      meta_for (int i = 0; i < d; i++)
        meta_for (int u = 0; u < B; u++)
          a[i * B + u] += 1;
    }
}
"""
ALWAYS = NEVER.replace("never", "always").replace("  if (more < 1)\n", "")


@pytest.fixture
def quick(monkeypatch):
    """Kernels that ``metafork verify`` compiles are not optimized."""
    monkeypatch.setattr("metafork.comprehensive.verification.Options", partial(Options, optimization="-O0"))


def ran(tmp_path, text, *options):
    path = tmp_path / "p.mf"
    path.write_text(text)
    chosen = [
        "--counters",
        "threads_per_block",
        "--strategies",
        "",
        "--registers",
        "none",
        "--no-races",
        "--points",
        "4",
    ]
    return CliRunner().invoke(cli, ["verify", str(path), *chosen, *options])


@pytest.mark.usefixtures("quick")
@pytest.mark.slow
def test_a_leaf_that_never_ran_is_not_verified(tmp_path):
    told = ran(tmp_path, ALWAYS + NEVER)
    assert told.exit_code == 5
    assert "not verified: 1 of 2 kernels never ran" in told.output
    (row,) = [line for line in told.output.splitlines() if line.startswith("p_k1 1")]
    assert "not verified" in row
    assert "not verified: p_k1 leaf 1 (as written): " in told.output
    document = json.loads(ran(tmp_path, ALWAYS + NEVER, "--json").output)
    assert document["passed"]
    assert [(one["schedule"], one["leaf"]) for one in document["not_verified"]] == [("p_k1", 1)]
    assert "does not come to the schedule" in document["not_verified"][0]["reason"]
    assert [one["verified"] for one in document["variants"]] == [True, False]


@pytest.mark.slow
def test_a_schedule_without_a_leaf_is_not_verified(tmp_path):
    never = NEVER.replace("more < 1", "n < 0")
    told = ran(tmp_path, ALWAYS + never)
    assert told.exit_code == 5
    assert "p.mf: not verified: p_k1 without a leaf" in told.output
    assert "not verified: p_k1: it has no leaf" in told.output
    document = json.loads(ran(tmp_path, never, "--json").output)
    assert [(one["schedule"], one["leaf"]) for one in document["not_verified"]] == [("p_k0", 0)]


def test_a_leaf_of_a_function_that_no_driver_calls_is_not_verified(tmp_path):
    given = ALWAYS.replace("(int n", "(struct unknown *one, int n").replace(
        "  meta_schedule", "  use(one);\n  meta_schedule"
    )
    told = ran(tmp_path, given)
    assert told.exit_code == 5
    assert "not verified: p_k0 leaf 1 (as written): no driver calls its function" in told.output


@pytest.mark.usefixtures("quick")
@pytest.mark.slow
def test_leaves_that_ran_are_verified(tmp_path):
    told = ran(tmp_path, ALWAYS)
    assert told.exit_code == 0
    assert "p.mf: verified\n" in told.output
    assert "not verified" not in told.output


def test_what_cannot_be_built_names_the_init_file(tmp_path):
    init = tmp_path / "broken.c"
    init.write_text("void always_init( {")
    told = ran(tmp_path, ALWAYS, "--init", str(init))
    assert told.exit_code == 1
    assert "broken.c" in told.output
