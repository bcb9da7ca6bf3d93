"""machine.h: METAFORK_MACHINE is read as metafork.runtime.machine reads it, in C11 and in C++."""

import ctypes
import re
from fractions import Fraction
from pathlib import Path

import pytest

from metafork.runtime.machine import FIELDS, MachineError, parse_machine
from tests.runtime.compiling import INCLUDE, WARNINGS, run, succeed
from tests.runtime.machine_structure import Machine

DISPATCHER = Path(__file__).parents[2] / "docs" / "dispatcher.md"
SOURCE = """
#include "metafork/machine.h"
int start(metafork_machine *m) { memset(m, 0, sizeof *m); return metafork_machine_preset("sm_80", 5, m); }
int override(metafork_machine *m, const char *text)
{ const char *fault = ""; return metafork_machine_override(m, text, &fault); }
const char *said(int code) { return metafork_error_text(code); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("machine")
    (directory / "machine.c").write_text(SOURCE)
    target = directory / "machine.so"
    flags = [*WARNINGS, "-Wpedantic", f"-I{INCLUDE}", "-shared", "-fPIC"]
    succeed(["gcc", "-std=c11", *flags, directory / "machine.c", "-o", target])
    return ctypes.CDLL(str(target))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "R=63,T=1024,Z=12288",
        " R = 63 , registers_per_block = 7 ",
        "sm_20",
        "sm_120,shared_words=5",
        "gfx90a",
        "gfx942,Z=5",
        "gfx1100",
        "gfx90",
        "Z=5,sm_120",
        "occupancy=3/4,intensity=1.5,occupancy=0.25",
        "grid_dim_y=4611686018427387",
        "R",
        "R=",
        "=1",
        "R=x",
        "R=-1",
        "R=1.5",
        "R=1,,T=2",
        "R=1,",
        "R=1 T=2",
        "sm_99",
        "q=1/0",
        "R=99999999999999999999",
        "Z=0,R=0,RB=0,T=0,blocks_per_sm=0",
        *("sm_87", "sm_103,Z=7", "sm_90a", "sm_100f", "sm_120a,T=3", "sm_121a"),
        *("sm_75a", "sm_90b", "sm_9a", "sm_1000a", "sm_90aa", "sm_a"),
        "warp_size=0",
        "warp_size=1024",
        "warp_size=1025",
        "grid_dim_x=0",
        "grid_dim_z=0",
        "block_dim_y=0",
        "block_dim_z=1",
        "R=" + 5000 * "9",
    ],
)
def test_overrides_are_read_as_python_reads_them(library, text):
    machine = Machine()
    assert library.start(ctypes.byref(machine)) == 0
    error = library.override(ctypes.byref(machine), text.encode())
    try:
        expected = parse_machine(text)
    except MachineError:
        assert error == -4
        return
    assert error == 0
    assert {name: getattr(machine, name) for name in FIELDS} == expected.fields()
    targets = {t.name.decode(): Fraction(t.numerator, t.denominator) for t in machine.targets[: machine.target_count]}
    assert targets == expected.targets


@pytest.mark.parametrize(("name", "capability"), [("sm_20", 20), ("sm_121f", 121), ("gfx90a", 0), ("gfx1100", 0)])
def test_presets_have_the_capability_of_their_name(library, name, capability):
    machine = Machine()
    library.start(ctypes.byref(machine))
    assert library.override(ctypes.byref(machine), name.encode()) == 0
    assert machine.compute_capability == capability


def test_codes_say_what_the_documentation_says(library):
    library.said.restype = ctypes.c_char_p
    (row,) = re.findall(r"^\| `METAFORK_EOVERFLOW` \| (.*) \|$", DISPATCHER.read_text(), re.MULTILINE)
    assert library.said(-2).decode() == row


def test_more_targets_than_there_is_room_for(library):
    machine = Machine()
    library.start(ctypes.byref(machine))
    names = [f"t{i}=1" for i in range(9)]
    assert library.override(ctypes.byref(machine), ",".join(names[:8]).encode()) == 0
    assert library.override(ctypes.byref(machine), ",".join(names).encode()) == -4


@pytest.mark.parametrize("compiler", [["gcc", "-std=c11"], ["gcc", "-std=gnu11"], ["g++", "-std=c++17", "-x", "c++"]])
def test_the_headers_of_users_compile_without_warnings(tmp_path, compiler):
    (tmp_path / "user.c").write_text(
        '#include "metafork/machine.h"\n#include "metafork/exact.h"\n#include "metafork/host.h"\n'
        "int user(int code) { return metafork_error_text(code)[0]; }\n"
    )
    succeed([*compiler, *WARNINGS, "-Wpedantic", f"-I{INCLUDE}", "-c", tmp_path / "user.c", "-o", tmp_path / "user.o"])


def test_host_h_needs_no_other_header(tmp_path):
    (tmp_path / "alone.c").write_text('#include "metafork/host.h"\n')
    done = run(["gcc", "-E", f"-I{INCLUDE}", tmp_path / "alone.c"])
    assert "features.h" not in done.stdout
    assert "typedef" not in done.stdout.split("host.h", 1)[0]
    assert "metafork_touch" in done.stdout
