"""What the first messages of a new user say: the place to change, one cause, and a help that can be followed."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli
from metafork.comprehensive.registry import COUNTERS, DESCRIPTIONS, OPTIONAL_COUNTERS, OPTIONAL_STRATEGIES, STRATEGIES

GOOD = """\
void scale(int n, int B, float x[n])
{
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++)
      x[i] = 2 * x[i];
  }
}
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("good.mf").write_text(GOOD)
    Path("empty.mf").write_text("\n")
    Path("folder").mkdir()

    def invoke(*arguments):
        return CliRunner().invoke(cli, [str(argument) for argument in arguments])

    return invoke


COMMANDS = {
    "a machine that is too new": (
        "optimize good.mf --machine sm_99",
        2,
        "there is no machine 'sm_99'\n  the next older machine: sm_90 (H100, H200)\n",
        "metafork optimize --machine help",
    ),
    "a machine of another tool": ("optimize good.mf --machine compute_80", 2, "did you mean: sm_80 (A100, A30)?"),
    "a machine by its number": ("optimize good.mf --machine 8.6", 2, "did you mean: sm_86"),
    "all machines": ("optimize --machine help", 0, "sm_90    H100, H200", "Z=58112", "sm_75..sm_120"),
    "all machines, of a tree": ("select --machine help", 0, "sm_80    A100"),
    "all counters": ("optimize --counters help", 0, "shared_memory", "bank_degree"),
    "all strategies": ("verify --strategies help", 0, "caching", "double_buffering"),
    "all back ends": ("optimize --backend help", 0, "opencl"),
    "an abbreviated counter": (
        "optimize good.mf --counters smem",
        2,
        "did you mean: shared_memory?",
        "--counters help",
    ),
    "counters of registers": ("optimize good.mf --counters regs", 2, "registers_per_thread, registers_per_block?"),
    "a related strategy": ("optimize good.mf --strategies tiling", 2, "register_tile, tiles?", "--strategies help"),
    "a strategy of which nothing is known": ("optimize good.mf --strategies qqq", 2, "'qqq'\n  all strategies: "),
    "two forms": (
        "optimize good.mf --strategies +granularity,caching",
        2,
        "mixes two forms\n",
        "each name: +granularity,+caching\n",
        "leave + out: granularity,caching\n",
    ),
    "two forms of counters": (
        "optimize good.mf --counters shared_memory,+bank_degree",
        2,
        "--counters shared_memory,+",
    ),
    "no file": ("check nofile.mf", 2, "Error: there is no file nofile.mf\n"),
    "no file, optimized": ("optimize nofile.mf", 2, "Error: there is no file nofile.mf\n"),
    "no tree": ("select nothing.out --machine sm_80", 2, "Error: there is no directory nothing.out\n"),
    "a directory for a tree": ("render folder", 2, "name the files in it: metafork render folder/*.tree.json\n"),
    "a directory": ("check folder", 2, "folder is a directory; name the files in it: metafork check folder/*.mf\n"),
    "a file for a command": ("good.mf", 2, "to compile a file: metafork optimize good.mf\n", "metafork --help"),
    "a word of another tool": ("compile good.mf -o x", 2, "did you mean: metafork optimize good.mf -o x?\n"),
    "a mistyped command": ("chekc good.mf", 2, "did you mean: metafork check good.mf?\n"),
    "a word of nothing": ("quux", 2, "there is no command 'quux'\n  all commands: metafork --help\n"),
    "a code": ("explain MF0101", 0, "MF0101: ", "refused: three `meta_for`s", "reason: ", "help: "),
    "codes in small letters": ("explain mf0401 MF0402", 0, "MF0401: ", "MF0402: "),
    "no code": ("explain MF9999", 2, "there is no diagnostic MF9999"),
    "a source for a tree": (
        "select good.mf --machine sm_80 n=100 B=32",
        2,
        "good.mf is a source file\n",
        "metafork optimize good.mf\n",
        "metafork select good.out --machine sm_80 n=100 B=32\n",
    ),
    "a source to draw": ("render good.mf", 2, "good.mf is a source file\n", "metafork render good.out/good.tree.json"),
}


@pytest.mark.parametrize("case", COMMANDS.values(), ids=COMMANDS)
def test_a_mistake_on_the_command_line_is_told_with_what_to_type(run, case):
    line, status, *parts = case
    result = run(*line.split())
    assert result.exit_code == status
    for part in parts:
        assert part in result.output


def test_names_have_descriptions():
    assert set(DESCRIPTIONS) == {*COUNTERS, *OPTIONAL_COUNTERS, *STRATEGIES, *OPTIONAL_STRATEGIES}


def test_what_is_told_for_a_source_can_be_typed(run):
    assert run("optimize", "good.mf").exit_code == 0
    assert run("select", "good.out", "--machine", "sm_80", "n=100", "B=32").exit_code == 0
    for given, whole in (("1e6", "1000000"), ("1_000", "1000"), ("x", "1000"), ("inf", "1000")):
        refused = run("select", "good.out", "--machine", "sm_80", f"n={given}", "B=32")
        assert (refused.exit_code, f"n={given}: give a whole number, such as n={whole}" in refused.output) == (2, True)
        assert run("select", "good.out", "--machine", "sm_80", f"n={whole}", "B=32").exit_code == 0


# --- diagnostics ------------------------------------------------------------------------------------------------

MENDED = re.compile(r"^ +", re.MULTILINE)


class Case(NamedTuple):
    """A program, what is said of it, and changes of its text that the help asks for: what is replaced, and by what."""

    text: str
    code: str
    place: tuple[int, int]
    message: str
    help: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]
    options: tuple[str, ...] = ()


def nest(parameters, *lines, clause=" meta_block(B)"):
    """Return a function with a schedule of these lines, the first of which is line 4."""
    return "\n".join([f"void f({parameters})", "{", f"  meta_schedule{clause} {{", *lines, "  }", "}", ""])


I = "    meta_for (int i = 0; i < n; i++)"  # noqa: E741
J = "      meta_for (int j = 0; j < m; j++)"
SQUARE = " meta_block(B, B)"
FOR_J = "      for (int j = 0; j < m; j++)"

RACES = {
    "sums of rows, a loop for blocks and one for threads": Case(
        nest("int n, int m, const float a[n][m], float x[n]", I, J, "        x[i] += a[i][j];", clause=""),
        "MF0402",
        (6, 9),
        "two threads write `x[0]` at the same time: a race",
        ("make the loop over `j` a `for`", "a parameter, `int B`", "meta_schedule meta_block(B) {\n", "for (int"),
        (("int m,", "int m, int B,"), ("meta_schedule {", "meta_schedule meta_block(B) {"), (J, FOR_J)),
    ),
    "sums of rows, in blocks of two dimensions": Case(
        nest("int n, int m, int B, const int a[n][m], int x[n]", I, J, "        x[i] |= a[i][j];", clause=SQUARE),
        "MF0401",
        (6, 9),
        "two threads write `x[0]` at the same time: a race",
        ("meta_schedule meta_block(B) {\n", "for (int j = 0;", "or make the update atomic: `meta_atomic x[i] |="),
        (("(B, B)", "(B)"), (J, FOR_J)),
    ),
    "a product with three parallel loops": Case(
        nest("int n, int m, int B, const float a[n][n], float x[n][m]", I, J,
             "        meta_for (int k = 0; k < n; k++)", "          x[i][j] += a[i][k];", clause=SQUARE),
        "MF0401",
        (7, 11),
        "two threads write `x[0][0]` at the same time: a race",
        ("make the loop over `k` a `for`", "        for (int k = 0; k < n; k++)\n"),
        (("        meta_for (int k", "        for (int k"),),
    ),
    "a value of many iterations": Case(
        nest("int n, int m, int B, const float a[n][m], float x[n]", I, J, "        x[i] = a[i][j];"),
        "MF0401",
        (6, 9),
        "two threads write `x[0]` at the same time: a race",
        ("make the loop over `j` a `for`:\n",),
        ((J, FOR_J),),
    ),
    "a sum of all": Case(
        nest("int n, int B, const int a[n], int x[1]", I, "      x[0] += a[i];"),
        "MF0401",
        (5, 7),
        "two threads write `x[0]` at the same time: a race",
        ("meta_reduction(+: x)\n", "or make the update atomic: `meta_atomic x[0] += a[i];`"),
        ((I, f"    meta_reduction(+: x)\n{I}"),),
    ),
    "a sum of all, atomic": Case(
        nest("int n, int B, const int a[n], int *x", I, "      *x += a[i];"),
        "MF0401",
        (5, 7),
        "two threads write",
        ("or make the update atomic: `meta_atomic *x += a[i];`",),
        (("*x += a", "meta_atomic *x += a"),),
    ),
    "a sum of all, of floats": Case(
        nest("int n, int B, const float a[n], float x[1]", I, "      x[0] += a[i];"),
        "MF0401",
        (5, 7),
        "two threads write",
        ("meta_reduction(+: x)\n", "`--reassociate`"),
        ((I, f"    meta_reduction(+: x)\n{I}"),),
        ("--reassociate",),
    ),
    "a sum written as an assignment": Case(
        nest("int n, int m, int B, const float a[n][m], float x[n]", I, J, "        x[i] = a[i][j] + x[i];"),
        "MF0401",
        (6, 26),
        "while another writes it: a race",
        ("make the loop over `j` a `for`. Each thread then adds up an element of `x`:\n",),
        ((J, FOR_J),),
    ),
    "a stencil in place": Case(
        nest("int n, int B, float x[n]", "    meta_for (int i = 1; i < n - 1; i++)",
             "      x[i] = x[i - 1] + x[i + 1];"),
        "MF0401",
        (5, 14),
        "while another writes it: a race",
        ("read one array and write another:\n", "float x[n], float x_new[n]\n", "x_new[i] = x[i - 1] + x[i + 1];"),
        (("float x[n]", "float x[n], float x_new[n]"), ("x[i] = ", "x_new[i] = ")),
    ),
    "a transposition in place": Case(
        nest("int n, int B, double x_new[n][n]", I, "      meta_for (int j = 0; j < n; j++)",
             "        x_new[i][j] = x_new[j][i];", clause=SQUARE),
        "MF0401",
        (6, 23),
        "while another writes it: a race",
        ("double x_new[n][n], double x_new_new[n][n]\n", "x_new_new[i][j] = x_new[j][i];"),
        (("double x_new[n][n]", "double x_new[n][n], double x_new_new[n][n]"), ("x_new[i][j]", "x_new_new[i][j]")),
    ),
    "an even size": Case(
        nest("int n, int B, float x[(n + 1) * (n + 1)] /* one */", "    meta_for (int i = 0; i < n; i += 2)",
             "      meta_for (int j = 0; j < n; j += 2)", "        x[i * n + j] = x[(i + 1) * n + j + 1];"),
        "MF0401",
        (6, 24),
        "while another writes it: a race",
        ("if `n % 2 == 0` always holds, say so in front of the schedule: `assert(n % 2 == 0);`",),
        (("  meta_schedule", "  assert(n % 2 == 0);\n  meta_schedule"),),
    ),
}  # fmt: skip
WARNINGS = {
    "the greatest of all": Case(
        nest("int n, int B, const int x[n], int m[1]", I, "      if (m[0] < x[i]) m[0] = x[i];"),
        "MF0403",
        (5, 11),
        "one thread may read the same element of `m` while another writes it",
        ("say that it is a reduction, in front of the loop:\n", "meta_reduction(max: m)\n"),
        ((I, f"    meta_reduction(max: m)\n{I}"),),
    ),
    "the least of all": Case(
        nest("int n, int B, const int x[n], int m[1]", I, "      if (m[0] > x[i]) m[0] = x[i];"),
        "MF0403",
        (5, 11),
        "one thread may read the same element of `m` while another writes it",
        ("meta_reduction(min: m)\n",),
        ((I, f"    meta_reduction(min: m)\n{I}"),),
    ),
    "a histogram": Case(
        nest("int n, int B, const int x[n], int bin[256]", I, "      bin[x[i]]++;"),
        "MF0403",
        (5, 7),
        "two threads may write the same element of `bin` at the same time",
        ("if they may, make the update atomic: `meta_atomic bin[x[i]]++;`",),
        (("bin[x[i]]++", "meta_atomic bin[x[i]]++"),),
    ),
    "a permutation": Case(
        nest("int n, int B, const int p[n], float x[n]", I, "      x[p[i]] = i;"),
        "MF0403",
        (5, 7),
        "two threads may write the same element of `x` at the same time",
        ("if they never do, say so in the line before: `#pragma metafork disjoint(x)`",),
        ((I, f"{I} {{\n#pragma metafork disjoint(x)"), ("x[p[i]] = i;", "x[p[i]] = i; }")),
    ),
    "a list that is read": Case(
        nest("int n, int B, const int p[n], float x[n]", I, "      x[i] = x[p[i]];"),
        "MF0403",
        (5, 14),
        "one thread may read the same element of `x` while another writes it",
        ("if they never do, say so in the line before: `#pragma metafork disjoint(x)`",),
        ((I, f"{I} {{\n#pragma metafork disjoint(x)"), ("x[p[i]];", "x[p[i]]; }")),
    ),
}

ONE = "    meta_for (int i = 0; i < n; i++)\n      x[i] = 2 * x[i];\n"
BLOCKS = "meta_schedule meta_block(B) {\n"
SUMS = "int f(int n, int B, const int x[n])\n{\n  int sum = 0;\n  meta_schedule meta_block(B) {\n"
COPY = "int n, int B, const float x[n], float y[n]"
BY_HAND = ("    meta_for (int b = 0; b < n / B; b++)", "      meta_for (int u = 0; u < B; u++)")
FORMS = {
    "a sum": Case(
        f"{SUMS}{I}\n      sum += x[i];\n  }}\n  return sum;\n}}\n",
        "MF0304",
        (6, 7),
        "all threads add to `sum`, and the schedule does not say so",
        ("meta_reduction(+: sum)\n", "meta_for (int i = 0; i < n; i++)"),
        ((I, f"    meta_reduction(+: sum)\n{I}"),),
    ),
    "a count": Case(
        f"{SUMS}{I}\n      if (x[i] > 3) sum++;\n  }}\n  return sum;\n}}\n",
        "MF0304",
        (6, 21),
        "all threads add to `sum`",
        ("meta_reduction(+: sum)\n",),
        ((I, f"    meta_reduction(+: sum)\n{I}"),),
    ),
    "a sum written as an assignment without a clause": Case(
        f"{SUMS}{I}\n      sum = sum + x[i];\n  }}\n  return sum;\n}}\n",
        "MF0304",
        (6, 7),
        "all threads add to `sum`",
        ("meta_reduction(+: sum)\n",),
        ((I, f"    meta_reduction(+: sum)\n{I}"),),
    ),
    "a sum in a variable of the file": Case(
        "int all;\n" + nest("int n, int B, const int x[n]", I, "      all += x[i];"),
        "MF0304",
        (6, 7),
        "all threads add to `all`",
        ("`int all_sum = all;` in front of the schedule, `all = all_sum;` behind it", "meta_reduction(+: all_sum)\n"),
        (
            ("  meta_schedule", "  int all_sum = all;\n  meta_schedule"),
            (I, f"    meta_reduction(+: all_sum)\n{I}"),
            ("all += x[i];\n  }\n", "all_sum += x[i];\n  }\n  all = all_sum;\n"),
        ),
    ),
    "a word in front of a loop": Case(
        nest("int n, int B, float x[n]", ONE.rstrip().replace("meta_for", "parallel for")),
        "MF0011",
        (4, 5),
        "`parallel` is not a word of this language",
        ("write `meta_for (int i = 0; i < n; i++)`",),
        (("parallel for", "meta_for"),),
    ),
    "a mask of floats": Case(
        f"{SUMS}{I}\n      sum *= x[i];\n  }}\n  return sum;\n}}\n".replace("int sum", "double sum"),
        "MF0304",
        (6, 7),
        "all threads update `sum`",
        ("meta_reduction(*: sum)\n", "`--reassociate`"),
        ((I, f"    meta_reduction(*: sum)\n{I}"),),
        ("--reassociate",),
    ),
    "a reduction of floats": Case(
        f"{SUMS}    meta_reduction(+: sum)\n{I}\n    sum += x[i]; }}\n  return sum;\n}}\n".replace("int s", "float s"),
        "MF0225",
        (5, 23),
        "adding `float` numbers in another order gives another result",
        ("allow it: add `--reassociate` to the command",),
        (),
        ("--reassociate",),
    ),
    "serial loops only": Case(
        nest("int n, int B, float x[n]", ONE.rstrip().replace("meta_for", "for")),
        "MF0112",
        (4, 5),
        "this schedule has no `meta_for`",
        ("write `meta_for (int i = 0; i < n; i++)`",),
        (("    for", "    meta_for"),),
    ),
    "serial loops without a block": Case(
        nest("int n, float x[n]", ONE.rstrip().replace("meta_for", "for"), clause=""),
        "MF0112",
        (4, 5),
        "this schedule has no `meta_for`",
        ("write `meta_for (int i = 0; i < n; i++)`", "a parameter `int B`: `meta_schedule meta_block(B) {`"),
        (("    for", "    meta_for"), ("int n", "int n, int B"), ("meta_schedule {", "meta_schedule meta_block(B) {")),
    ),
    "a loop of another system": Case(
        nest("int n, int B, float x[n]", ONE.rstrip().replace("meta_for", "parallel_for")),
        "MF0011",
        (4, 5),
        "`parallel_for` is not a word of this language",
        ("write `meta_for (int i = 0; i < n; i++)`",),
        (("parallel_for", "meta_for"),),
    ),
    "a loop of Cilk": Case(
        nest("int n, int B, float x[n]", ONE.rstrip().replace("meta_for", "cilk_for")),
        "MF0011",
        (4, 5),
        "`cilk_for` is no",
        ("meta_for",),
        (("cilk_for", "meta_for"),),
    ),
    "a loop of MetaFork": Case(
        f"void f(int n, float x[n])\n{{\n{ONE}}}\n".replace("meta_for", "meta_parallel_for"),
        "MF0011",
        (3, 5),
        "`meta_parallel_for` is not a word of this language",
        (f"{BLOCKS}{ONE}  }}", "`int B`"),
        (("int n", "int n, int B"), ("    meta_parallel", f"{BLOCKS}  meta"), (";\n}", ";\n}\n}")),
    ),
    "a semicolon": Case(
        f"void f(int n, int B, float x[n])\n{{\n  meta_schedule;\n{ONE}}}\n",
        "MF0014",
        (3, 16),
        "this schedule is empty, because it ends here",
        ("remove the `;`, and put the loop in braces", f"{BLOCKS}{ONE}  }}"),
        (("meta_schedule;\n", BLOCKS), (";\n}", ";\n}\n}")),
    ),
    "a semicolon in front of a brace": Case(
        GOOD.replace("meta_block(B) {", "meta_block(B); {"),
        "MF0014",
        (3, 30),
        "this schedule is empty, because it ends here",
        ("remove the `;`: `meta_schedule meta_block(B) {`",),
        (("; {", " {"),),
    ),
    "the size of a block behind the schedule's word": Case(
        GOOD.replace(" meta_block(B)", "(B)"),
        "MF0010",
        (3, 16),
        "`meta_schedule` takes no arguments",
        ("a word of its own: `meta_schedule meta_block(B) {`",),
        (("meta_schedule(B)", "meta_schedule meta_block(B)"),),
    ),
    "a clause in parentheses": Case(
        nest(COPY, *BY_HAND, "        y[b * B + u] = x[b * B + u];", clause="(cache(x))"),
        "MF0010",
        (3, 16),
        "`meta_schedule` takes no arguments",
        ("remove the parentheses: `meta_schedule cache(x) {`",),
        (("(cache(x))", " cache(x)"),),
    ),
    "a block of two dimensions for one loop": Case(
        GOOD.replace("(B)", "(32, 32)"),
        "MF0101",
        (3, 17),
        "the block has two dimensions, and the nest has one loop",
        ("give one size for the loop, `meta_block(1024)`",),
        (("(32, 32)", "(1024)"),),
    ),
    "a block of three dimensions for two loops": Case(
        nest("int n, int m, int B, int x[n][m]", I, J, "        x[i][j] = 1;", clause=" meta_block(B, B, 4)"),
        "MF0101",
        (3, 17),
        "the block has three dimensions, and the nest has two loops",
        ("give one size for each loop, `meta_block(B, B)`",),
        (("(B, B, 4)", "(B, B)"),),
    ),
    "a triangle": Case(
        nest("int n, float x[n][n]", I, "      meta_for (int j = 0; j < i; j++)", "        x[i][j] = 0;", clause=""),
        "MF0105",
        (5, 32),
        "the number of threads `i` changes from block to block",
        ("`meta_schedule meta_block(B0, B1) {`",),
        (("int n", "int n, int B0, int B1"), ("meta_schedule", "meta_schedule meta_block(B0, B1)")),
    ),
    "an array among loops": Case(
        nest(COPY, "    float t[n];", *BY_HAND, "      { t[b * B + u] = 1; y[b * B + u] = t[b * B + u]; }", clause=""),
        "MF0106",
        (4, 5),
        "`t` is declared among the loops of the grid",
        ("move this line in front of `meta_schedule`",),
        (("    float t[n];\n", ""), ("  meta_schedule", "  float t[n];\n  meta_schedule")),
    ),
    "a clause among loops": Case(
        nest(COPY, "    cache(x);", *BY_HAND, "        y[b * B + u] = x[b * B + u];", clause=""),
        "MF0106",
        (4, 5),
        "`cache` belongs behind the word `meta_schedule`",
        ("write `meta_schedule cache(x) {`, and remove this line",),
        (("    cache(x);\n", ""), ("meta_schedule", "meta_schedule cache(x)")),
    ),
    "the size of what is cached": Case(
        nest(COPY, I, "      y[i] = 2 * x[i];", clause=" meta_block(B) cache(y, x[B])"),
        "MF0010",
        (3, 41),
        "`cache` takes names of arrays only",
        ("`cache(y, x)`",),
        (("x[B]", "x"),),
    ),
    "a missing brace": Case(
        GOOD.replace("i++)\n", "i++) {\n"),
        "MF0004",
        (7, 2),
        "the file ends, and one `}` is missing",
        ("add the missing `}`",),
        (("x[i];", "x[i]; }"),),
    ),
    "a pointer that walks": Case(
        nest("int n, int B, float *x", f"{I} {{", "      *x = 2 * *x;", "      x++;", "    }"),
        "MF0316",
        (6, 7),
        "`x++` moves a pointer in a schedule",
        ("as in `x[i]`, and remove `x++`",),
        (("      x++;\n", ""), ("*x = 2 * *x", "x[i] = 2 * x[i]")),
    ),
    "a pointer that walks while it is read": Case(
        nest("int n, int B, const float *x, float y[n]", I, "      y[i] = *x++;"),
        "MF0316",
        (5, 15),
        "`x++` moves a pointer in a schedule",
        ("as in `x[i]`",),
        (("*x++", "x[i]"),),
    ),
}  # fmt: skip
WARNINGS |= {
    "a block of too many threads": Case(
        GOOD.replace("(B)", "(4096)"),
        "MF0114",
        (3, 28),
        "no GPU runs blocks of 4096 threads",
        ("give a number up to 1024; 128 and 256 are usual",),
        (("4096", "256"),),
    ),
    "a block of two dimensions of too many threads": Case(
        nest("int n, int m, int x[n][m]", I, J, "        x[i][j] = 1;", clause=" meta_block(64, 32)"),
        "MF0114",
        (3, 28),
        "no GPU runs blocks of 2048 threads",
        ("sizes such as 32 and 8",),
        (("64, 32", "32, 8"),),
    ),
}
CASES = {**RACES, **FORMS, **WARNINGS}


def test_a_file_without_code_is_told_with_a_first_program(run):
    for text, what in (
        ("", "this file is empty"),
        ("\n  \n", "this file is empty"),
        ("// soon\n", "this file has no code"),
    ):
        Path("f.mf").write_text(text)
        result = run("check", "f.mf")
        assert result.exit_code == 1
        assert f"error[MF0002]: {what}" in result.output
        assert "examples/smooth.mf" in result.output


def first_line_of(result):
    found = re.search(r"^f\.mf:(\d+):(\d+): (?:error|warning)\[(MF\d+)\]: (.*)$", result.output, re.MULTILINE)
    assert found is not None, result.output
    return found[3], (int(found[1]), int(found[2])), found[4]


@pytest.mark.parametrize("name", CASES)
def test_a_cause_is_told_once_where_it_is_with_a_help_that_can_be_followed(run, name):
    case = CASES[name]
    Path("f.mf").write_text(case.text)
    result = run("check", "f.mf")
    assert result.exit_code == (0 if name in WARNINGS else 1)
    code, place, message = first_line_of(result)
    assert (code, place) == (case.code, case.place)
    assert case.message in message
    assert len(re.findall(r": (?:error|warning)\[", result.output)) == 1
    told = MENDED.sub("", result.output.partition("= help: ")[2])
    for part in case.help:
        assert MENDED.sub("", part).strip() in told, told
    text = case.text
    for old, new in case.changes:
        assert old in text
        text = text.replace(old, new, 1)
    Path("f.mf").write_text(text)
    mended = run("check", "f.mf", *case.options)
    assert re.fullmatch(r"f\.mf: \d schedules?, no errors\n", mended.output)
