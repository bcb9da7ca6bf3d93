"""What CONTRIBUTING.md shows does what it says: its text is read, given as plugins, and run from end to end."""

import importlib.util
import json
import os
import re
import textwrap
from pathlib import Path

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive import registry
from metafork.comprehensive.optimize import discuss
from metafork.comprehensive.plugins import load
from metafork.evaluators.threads_per_block import COUNTER as THREADS
from metafork.frontend import parse
from metafork.ir.messages.source import Source
from metafork.printing.metafork_text import metafork_text
from metafork.transform.directive import Refused, applied
from metafork.transform.schedule import DIRECTIVES, schedule_of
from tests.comprehensive.metafork_command import metafork
from tests.runtime.compiling import build, run, succeed

ROOT = Path(__file__).parents[2]

TEXT = """
void product(int n, int m, int B, const double a[n][m], const double x[m], double y[n]) {
  int d = (n + B - 1) / B;
  meta_schedule cache() {
    meta_for (int i = 0; i < d; i++)
      meta_for (int j = 0; j < B; j++) {
        int p = i * B + j;
        if (p < n) {
          double sum = 0.0;
          for (int k = 0; k < m; k++) sum += a[p][k] * x[k];
          y[p] = sum;
        }
      }
  }
}
"""

DRIVER = """
#include <stdio.h>
#include "product.h"
double a[300][7], x[7], y[300];
int main(void) {
  for (int i = 0; i < 300; i++) for (int k = 0; k < 7; k++) a[i][k] = i / (k + 3.0);
  for (int k = 0; k < 7; k++) x[k] = 1.0 / (k + 1);
  product(300, 7, 100, a, x, y);
  for (int i = 0; i < 300; i++) {
    double sum = 0.0;
    for (int k = 0; k < 7; k++) sum += a[i][k] * x[k];
    if (sum != y[i]) { printf("y[%d] differs\\n", i); return 1; }
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The modules of the page as files of their own names, far from the tree."""
    folder = tmp_path_factory.mktemp("elsewhere")
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        code = textwrap.dedent(block)
        name = re.match(r'"""(\w+):', code)[1]
        (folder / f"{name}.py").write_text(code)
    return folder


def test_the_page_shows_two_counters_a_directive_two_strategies_and_a_back_end(shown):
    names = {path.stem for path in shown.glob("*.py")}
    assert names == {"phases_per_block", "threads_of_two_blocks", "reverse", "small_block", "rolled", "dry"}


def plugins_of(shown):
    return [path for path in sorted(shown.glob("*.py")) if path.stem != "reverse"]


def test_the_directive_is_one_module_and_one_entry(shown, monkeypatch):
    spec = importlib.util.spec_from_file_location("reverse", shown / "reverse.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(DIRECTIVES, "reverse", module.Reverse)
    sum_ = "double sum = 0.0;\n          for (int k = 0; k < m; k++) sum += a[p][k] * x[k];\n          y[p] = sum;"
    copy = TEXT.replace(sum_, "for (int k = 0; k < 4; k++) y[4 * p + k] = x[k];").replace("y[n]", "y[4 * n]")
    program = parse(Source("copy.mf", copy)).schedules[0].program
    text = metafork_text(applied(program, schedule_of("reverse(k)"), Analyses()))
    assert "int k = 4 - 1 - k_r;" in text
    product_of_rows = parse(Source("product.mf", TEXT)).schedules[0].program
    assert isinstance(applied(product_of_rows, schedule_of("reverse(k)"), Analyses()), Refused)


def test_the_worked_examples_make_a_tree(shown):
    plugins = [load(str(path)) for path in plugins_of(shown)]
    counters = registry.counters(["phases_per_block", "threads_of_two_blocks"], plugins)
    strategies = registry.strategies(["small_block{threads=32}", "rolled"], plugins)
    unit = parse(Source("matmul.mf", (ROOT / "examples" / "matmul.mf").read_text(encoding="utf-8")))
    tree = discuss(unit.schedules[0].program, [THREADS, *counters], strategies)
    leaves = [(leaf.own.strategies, [[str(c) for c in system] for system in leaf.systems]) for leaf in tree.leaves]
    small = [["32 <= T", "64 <= TS", "1 <= P", "T < B0*ub1"], ["B0*ub1 <= T", "64 <= TS", "1 <= P", "TS < 2*B0*ub1"]]
    assert leaves[0] == ((), [["B0*ub1 <= T", "2*B0*ub1 <= TS", "1 <= P"]])
    assert leaves[1][0] == ("small_block{threads=32}",)
    assert sorted(map(sorted, leaves[1][1])) == sorted(map(sorted, small))


@pytest.fixture(scope="module")
def product(shown, tmp_path_factory):
    """A program with all four, optimized by the command line and compiled for the processor."""
    folder = tmp_path_factory.mktemp("product")
    (folder / "product.mf").write_text(TEXT)
    plugins = [word for path in plugins_of(shown) for word in ("--plugin", path)]
    counters = "threads_of_two_blocks,registers_per_thread,phases_per_block"
    chosen = ["--counters", counters, "--strategies", "small_block,rolled", "--machine", "all"]
    metafork("optimize", "product.mf", *plugins, *chosen, cwd=folder)
    (folder / "main.c").write_text(DRIVER)
    out = folder / "product.out"
    include = ["-ffp-contract=off", "-DMETAFORK_CPU", f"-I{out}", f"-I{out}/include"]
    succeed(["g++", "-std=c++17", "-x", "c++", *include, "-c", out / "product.cu", "-o", folder / "product.o"])
    succeed(["gcc", "-std=gnu11", *include, "-c", out / "product_host.c", "-o", folder / "host.o"])
    build(folder / "main", [folder / "main.c", folder / "host.o", folder / "product.o"], *include, compiler=("gcc",))
    return folder


def launched(product, machine):
    """The leaves that ran, and what was said."""
    environment = {**os.environ, "METAFORK_TRACE": "1", "METAFORK_MACHINE": machine}
    done = run([product / "main"], env=environment)
    assert done.returncode == 0, done.stdout
    return re.findall(r"^metafork: product_k0 leaf (\d+) ", done.stderr, re.MULTILINE), done.stderr


def selected(product, machine):
    done = metafork("select", "product.out", "--machine", machine, "n=300", "m=7", "B=100", cwd=product)
    return done.stdout


@pytest.mark.slow
def test_the_dispatcher_and_select_take_the_same_leaves(product):
    (schedule,) = json.loads((product / "product.out" / "product.tree.json").read_text())["schedules"]
    strategies = {str(leaf["id"]): leaf["variants"][-1]["strategies"] for leaf in schedule["leaves"]}
    # sm_80 has room for two blocks of 100; 199 threads have not.
    for machine, small in [("sm_80", False), ("TS=199", True), ("sm_80,TS=200", False), ("TS=128,R=255", True)]:
        ((leaf,), _) = launched(product, machine)
        assert ("small_block" in strategies[leaf]) == small
        preset = machine if "sm_80" in machine else f"sm_80,{machine}"
        assert f"product_k0: leaf {leaf} (" in selected(product, preset)
    none, said = launched(product, "TS=127")
    assert none == []
    assert "no leaf fits this machine" in said
    assert "no leaf, the serial code runs: 128 <= TS does not hold: 128 > 127" in selected(product, "sm_80,TS=127")


def test_the_leaf_of_an_ir_strategy_is_ptx(product):
    text = (product / "product.out" / "report.md").read_text()
    assert "LLVM leaves loops rolled" in text
    assert "threads_of_two_blocks: `200` threads" in text or "threads_of_two_blocks: `2*B` threads" in text
    rolled = re.findall(r"`(product_k0_leaf\d+)`: .*\n  - strategies .*\brolled\b", text)
    assert rolled
    device = (product / "product.out" / "product.cu").read_text()
    assert f"static metafork_ptx {rolled[0]}_ptx = " in device
    assert (product / "product.out" / "leaves" / f"{rolled[0]}.ptx").exists()


@pytest.mark.slow
def test_the_back_end_says_what_would_run(shown, tmp_path):
    """It lies outside of the tree, and no file of the project knows it."""
    (tmp_path / "product.mf").write_text(TEXT)
    options = ["--plugin", shown / "dry.py", "--backend", "dry", "--counters", "threads_per_block"]
    metafork("optimize", "product.mf", *options, cwd=tmp_path)
    (tmp_path / "main.c").write_text(DRIVER)
    out = tmp_path / "product.out"
    assert {path.name for path in out.glob("*.c*")} == {"product_dry.c", "product_host.c", "metafork_runtime_dry.c"}
    include = ["-ffp-contract=off", f"-I{out}", f"-I{out}/include"]
    sources = [tmp_path / "main.c", out / "product_dry.c"]
    succeed(["gcc", "-std=gnu11", *include, "-c", out / "product_host.c", "-o", tmp_path / "host.o"])
    build(tmp_path / "main", [*sources, tmp_path / "host.o"], *include, compiler=("gcc",))
    done = run([tmp_path / "main"], env={**os.environ, "METAFORK_TRACE": "1"})
    assert done.returncode == 0, done.stdout
    traced, said = done.stderr.splitlines()
    assert traced == "metafork: product_k0 leaf 1 n=300 m=7 B=100 grid=3x1x1 block=50x1x1 shared_bytes=0 variant=1"
    assert said == "metafork: product_k0: leaf 1: the launch failed: this is a dry run; the serial code runs"
    refused = metafork("optimize", "product.mf", *options, "--target", "sm_90", status=2, cwd=tmp_path)
    assert "--backend dry is for no GPU" in refused.stderr


def test_numbers_of_presets_hold_between_them_and_before_them(product):
    # No preset is given: the number of the newest one that is not newer than the machine.
    for preset, number in [("sm_20", 1536), ("sm_60", 2048), ("sm_75", 1024), ("sm_89", 1536), ("sm_120", 2048)]:
        text = selected(product, f"{preset},R=255")
        assert "leaf 1," in text or str(number) in text
    text = metafork("select", "product.out", "--machine", "sm_75", "n=3000", "m=7", "B=513", cwd=product).stdout
    assert "2*B <= TS does not hold: 1026 > 1024" in text
