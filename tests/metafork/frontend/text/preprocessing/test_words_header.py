"""``metafork.h`` defines the words away for C; to metafork it is empty."""

import subprocess

import pytest

from metafork.comprehensive.emit import rendered_files, runtime_include_dir, write_files
from metafork.comprehensive.optimize import optimize
from metafork.frontend import parse
from metafork.ir.messages.source import Source

BODY = """
#include <stdbool.h>
void f(int n, int B, int x[n], float *other) {
  meta_schedule cache(x) meta_block(B) { meta_for (int i = 0; i < n; i++) x[i] += 1; }
  meta_schedule meta_block(B) {
    meta_for (int i = 0; i < n; i++) meta_atomic x[0] += 1;
  }
}
"""
INCLUDES = ['#include "metafork.h"', "#  include <metafork.h> /* the words */"]


@pytest.mark.parametrize("line", INCLUDES)
def test_the_line_changes_nothing(line):
    plain, included = (parse(Source("input.c", text + BODY)) for text in ("\n", f"{line}\n"))
    assert [one.program for one in included.schedules] == [one.program for one in plain.schedules]
    assert included.headers == ()


@pytest.mark.parametrize("more", [[], ["-Dmeta_for=for", "-Dmeta_schedule=", "-Dcache(...)="]])
def test_a_compiler_takes_the_file_as_it_is(more, tmp_path):
    (tmp_path / "input.c").write_text(f"{INCLUDES[0]}\n{BODY}")
    words = ["-Dmeta_atomic=", "-Dmeta_block(...)="] if more else []
    command = ["gcc", "-std=gnu11", "-Wall", "-Wno-unused-parameter", "-Werror", *more, *words]
    subprocess.run([*command, f"-I{runtime_include_dir()}", "-c", "input.c"], cwd=tmp_path, check=True)


def test_generated_files_find_it(tmp_path):
    files = rendered_files(optimize(Source("input.c", f"{INCLUDES[0]}\n{BODY}"), counters=(), strategies=()))
    write_files(tmp_path, files)
    (host,) = tmp_path.glob("*_host.c")
    command = ["gcc", "-std=gnu11", "-DMETAFORK_CPU", "-fsyntax-only", "-Iinclude", "-I.", host.name]
    subprocess.run(command, cwd=tmp_path, check=True)
