"""Children that are forked from a process with a device: they end, and what they call runs the serial code."""

import os
import subprocess

import pytest

from metafork.comprehensive.emit.targets.opencl import TARGET as OPENCL
from tests.comprehensive.emit.targets.programs import program
from tests.runtime.compiling import succeed

TEXT = """
void smooth(int n, int B, const float x[n], float y[n])
{
  meta_schedule meta_block(B) { meta_for (int i = 1; i < n - 1; i++) y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3; }
}
void twice(int n, int B, float x[n])
{
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) x[i] *= 2; }
}
"""
MAIN = """
#include "smooth.h"
#include "metafork/host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static float x[99], y[99];
static int child(const char *what)
{
  if (strcmp(what, "exits") == 0) exit(0);
  if (strcmp(what, "forks") == 0) {
    const pid_t other = fork();
    int status = 1;
    if (other == 0) exit(0);
    waitpid(other, &status, 0);
    exit(status != 0);
  }
  if (strcmp(what, "drops") == 0) metafork_drop(x);
  smooth(99, 8, x, y);
  exit(y[50] != 50 || y[98] != -1);
}
int main(int argc, char **argv)
{
  for (int i = 0; i < 99; i++) x[i] = i, y[i] = -1;
  const char *const what = argv[argc - 1];
  if (strcmp(what, "first") != 0) twice(99, 8, y), smooth(99, 8, x, y);
  if (strcmp(what, "keeps") == 0) metafork_keep(x), twice(99, 8, x);
  if (strcmp(what, "drops") == 0) metafork_keep(x), smooth(99, 8, x, y);
  for (int i = 0; i < 99; i++) y[i] = -1;
  fflush(NULL);
  const pid_t forked = fork();
  int status;
  if (forked == 0) child(what);
  waitpid(forked, &status, 0);
  if (status != 0) return WIFSIGNALED(status) ? 3 : 1;
  smooth(99, 8, x, y);
  return y[50] != 50;
}
"""


@pytest.fixture(scope="module")
def main(tmp_path_factory, opencl):
    directory = tmp_path_factory.mktemp("fork")
    options = {"counters": ["shared_memory"], "strategies": ["granularity"]}
    program(TEXT, "smooth.mf", directory, OPENCL, **options)
    (directory / "main.c").write_text(MAIN)
    names = ("main.c", "smooth_opencl.c", "smooth_host.c")
    sources = [next(directory.rglob(name)) for name in names]
    out = sources[1].parent
    flags = ["-O0", "-w", f"-I{out}", f"-I{out / 'include'}"]
    succeed(["gcc", "-std=gnu11", *flags, *sources, "-lm", "-ldl", "-lpthread", "-o", directory / "main"])
    environment = {"LD_LIBRARY_PATH": str(opencl.directory), "STANDIN_POCL": str(opencl.vendor), "METAFORK_CACHE": "0"}
    environment |= {"POCL_CACHE_DIR": str(opencl.directory / "cache")}

    def run(what):
        command = [str(directory / "main"), what]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=300, env={**os.environ, **environment}
        )
        return done.returncode, done.stderr.splitlines()

    return run


SAID = "metafork: smooth_k0: the device is that of the process that forked this one; the serial code runs"


@pytest.mark.parametrize(
    ("what", "said"),
    [("exits", []), ("forks", []), ("calls", [SAID]), ("drops", [SAID]), ("first", [])],
)
@pytest.mark.sampled(2)
def test_a_child(main, what, said):
    """The last one is forked before its parent uses a device, and uses it itself."""
    assert main(what) == (0, said)


def test_results_that_only_the_parent_has_are_not_made_up(main):
    status, said = main("keeps")
    assert status == 3
    assert said[-1].startswith("metafork: results cannot be fetched from the device: the device is that of the process")
