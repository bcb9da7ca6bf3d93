"""The generated files compiled and run on the CPU build, under AddressSanitizer and UndefinedBehaviorSanitizer."""

import os
import re
from fractions import Fraction
from pathlib import Path

import pytest
from msgspec.structs import replace

from metafork.comprehensive.emit import write_outputs
from tests.comprehensive.emit.blend_example import code_of, example
from tests.runtime.compiling import SANITIZE, WARNINGS, needs_nvcc, run, succeed

DRIVER = Path(__file__).with_name("driver.c")


def compiled(directory, program, *flags):
    """Compile the three files as a user would, each with its own compiler, and link them with the C compiler."""
    flags = [*WARNINGS, *flags, f"-I{directory}", f"-I{directory}/include"]
    objects = [directory / f"{program.name}{number}.o" for number in range(3)]
    cplusplus = ["g++", "-std=c++17", "-x", "c++", "-DMETAFORK_CPU", *flags]
    succeed([*cplusplus, "-c", directory / "blend.cu", "-o", objects[0]])
    c = ["gcc", "-std=gnu11", "-ffp-contract=off", "-DMETAFORK_CPU", *flags]
    succeed([*c, "-c", directory / "blend_host.c", "-o", objects[1]])
    succeed([*c, "-c", DRIVER, "-o", objects[2]])
    linker = "g++" if any("sanitize" in flag for flag in flags) else "gcc"
    succeed([linker, *flags, *objects, "-lm", "-o", program])
    return program


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    out = tmp_path_factory.mktemp("blend") / "blend.out"
    write_outputs(example(), out, code_of=code_of)
    return out


@pytest.fixture(scope="module")
def program(directory):
    return compiled(directory, directory / "driver", "-O0", "-DMETAFORK_CHECK", *SANITIZE)


def ran(program, *arguments, **variables):
    """Run the driver with METAFORK_ variables; what it reports must agree with the serial loops."""
    environment = {**os.environ, **{f"METAFORK_{name}": value for name, value in variables.items()}}
    done = run([program, *map(str, arguments)], env=environment)
    assert "different" not in done.stdout
    return done


def leaves(done):
    return re.findall(r"^metafork: \w+ leaf (\d+) N=", done.stderr, re.MULTILINE)


@pytest.mark.parametrize("size", [98, 100, 7, 1000])
@pytest.mark.parametrize(
    ("machine", "leaf"), [("", "1"), ("Z=14", "1"), ("Z=13", "2"), ("Z=7", "2"), ("Z=6", "3"), ("Z=0", "3")]
)
def test_every_leaf_gives_the_serial_result(program, size, machine, leaf):
    done = ran(program, "blend", size, 7, MACHINE=machine, TRACE="1", STRICT="1")
    assert done.returncode == 0
    assert leaves(done) == [leaf]
    assert f"metafork: blend_k0 leaf {leaf} N={size} B=7 grid={size // 7}x1x1 block=7x1x1" in done.stderr


def test_threads_in_reverse_order_and_a_grid_that_is_walked(program):
    done = ran(program, "blend", 1000, 7, MACHINE="grid_dim_x=3", TRACE="1", CPU_ORDER="reverse")
    assert done.returncode == 0
    assert "grid=3x1x1" in done.stderr


def test_no_leaf_is_said_once_and_the_serial_code_runs(program):
    done = ran(program, "twice", 100, 7, MACHINE="T=6")
    assert done.returncode == 0
    assert done.stderr == "metafork: blend_k0: no leaf fits this machine and these parameters; the serial code runs\n"


def test_strict_mode_aborts_with_the_violated_inequalities(program):
    done = ran(program, "blend", 100, 7, MACHINE="T=6", STRICT="1")
    assert done.returncode < 0
    assert "leaf 1: B <= T_ is violated: 7 <= 6" in done.stderr
    assert "leaf 3: B <= T_ is violated: 7 <= 6" in done.stderr


def test_outside_of_start(program):
    done = ran(program, "blend", 100000, 2000)
    assert done.returncode == 0
    assert "outside of what the program allows; the serial code runs" in done.stderr
    strict = ran(program, "blend", 100000, 2000, STRICT="1")
    assert strict.returncode < 0
    assert "start: B <= block_dim_x is violated: 2000 <= 1024" in strict.stderr


@pytest.mark.parametrize("strict", ["0", "1"])
def test_an_empty_nest_is_silent(program, strict):
    done = ran(program, "blend", 3, 7, STRICT=strict, TRACE="1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shift", [0, 1, 49])
def test_overlapping_arrays_are_left_to_the_serial_code(program, shift):
    done = ran(program, "overlap", 100, 7, shift, TRACE="1")
    assert done.returncode == 0
    assert leaves(done) == []
    assert "arrays a and c overlap and one is written; the serial code runs" in done.stderr


def test_arrays_that_touch_do_not_overlap(program):
    done = ran(program, "overlap", 100, 7, 50, TRACE="1")
    assert leaves(done) == ["1"]


def copies(done):
    lines = [line for line in done.stderr.splitlines() if line.endswith("the device")]
    return sum(" to " in line for line in lines), sum(" from " in line for line in lines)


def test_arrays_stay_on_the_device_during_a_serial_loop(program):
    done = ran(program, "relax", 100, 7, 5, TRACE="2")
    assert done.returncode == 0
    assert len(leaves(done)) == 10
    assert copies(done) == (2, 2)


def test_a_loop_whose_own_code_writes_a_kept_array_through_another_name(program):
    done = ran(program, "alias", 100, 7, 5, TRACE="2")
    assert done.returncode == 0
    assert len(leaves(done)) == 10
    assert done.stderr.count("metafork: 4 bytes of a to the device") == 4
    assert copies(done) == (6, 2)


def test_serial_code_between_launches_sees_current_arrays(program):
    done = ran(program, "relax", 100, 7, 3, MACHINE="Z=6", TRACE="2")
    assert done.returncode == 0
    assert len(leaves(done)) == 3
    assert "blend_k2: no leaf fits" in done.stderr
    assert copies(done) == (4, 3)  # b is read alone by the serial code, and need not go to the device again


def test_serial_code_alone_copies_nothing(program):
    done = ran(program, "relax", 100, 7, 3, MACHINE="T=6", TRACE="2")
    assert done.returncode == 0
    assert copies(done) == (0, 0)


def test_a_machine_that_cannot_be_read(program):
    done = ran(program, "twice", 100, 7, MACHINE="Z=lots")
    assert done.returncode == 0
    assert done.stderr.count('METAFORK_MACHINE="Z=lots" cannot be read at "Z=lots"') == 1
    assert ran(program, "select", 100, 7, MACHINE="Z=lots").stdout == "leaf -4 -\n"


@pytest.mark.parametrize("machine", ["warp_size=0", "grid_dim_x=0", "block_dim_z=0", "warp_size=4611686018427387904"])
def test_a_machine_that_cannot_be_is_refused_and_nothing_is_divided_by_it(program, machine):
    done = ran(program, "blend", 100, 7, MACHINE=machine, TRACE="1")
    assert done.returncode == 0, done.stderr
    assert leaves(done) == []
    assert done.stderr.count(f'METAFORK_MACHINE="{machine}" cannot be read at "{machine}"') == 1
    assert "at least 1" in done.stderr


def test_a_name_that_nobody_knows_is_warned_of(program):
    done = ran(program, "twice", 100, 7, MACHINE="ZZ=5")
    assert done.stderr.count("ZZ is neither a machine parameter nor a target of blend_k0") == 1


@pytest.mark.parametrize(
    ("n", "b", "answer"),
    [
        (100, 7, "leaf 1 2*B <= Z"),
        (100, 0, "leaf 0 -"),
        (-5, 7, "leaf 0 -"),
        (6, 7, "leaf 0 -"),
        (2**63 - 1, 1024, "leaf 1 2*B <= Z"),
        (2**63 - 1, 2**62, "leaf 0 -"),
    ],
)
def test_select(program, n, b, answer):
    assert ran(program, "select", n, b).stdout == f"{answer}\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((70, 7, 1), 0),
        ((70, 7, 4), -1),
        ((70, 7, 0), -1),
        ((2**40, 7, 1), -2),
        ((70, 0, 1), -2),
        ((5, 7, 1), -5),
        ((4096, 2048, 1), -3),
    ],
)
def test_launches_that_cannot_succeed_are_not_tried(program, arguments, error):
    assert ran(program, "launch", *arguments[:2], arguments[2]).stdout == f"{error}\n"


@pytest.mark.slow
def test_without_sanitizers_a_c_compiler_links_everything(directory):
    done = ran(compiled(directory, directory / "plain", "-O2"), "blend", 100, 7, TRACE="1")
    assert leaves(done) == ["1"]


def test_the_target_of_a_performance_counter_is_a_fraction(tmp_path):
    """With the cost B/64 at most Q the first leaf is taken, else the tree goes to its third."""
    result = example(Fraction(1, 2))
    write_outputs(result, tmp_path, code_of=code_of)
    program = compiled(tmp_path, tmp_path / "driver", "-O0")
    answers = {(7, ""): 1, (32, ""): 1, (33, ""): 3, (33, "cost=33/64"): 1, (33, "Q=0.5"): 3, (33, "Q=0.52"): 1}
    for (size, machine), leaf in answers.items():
        done = ran(program, "select", 100, size, MACHINE=machine)
        assert done.stdout.startswith(f"leaf {leaf} "), (size, machine)
    assert ran(program, "blend", 100, 33, MACHINE="Q=1").stderr == ""


PTX = """\
// what LLVM would write: "\t" and \\ survive
.version 7.0
.target sm_80
.address_size 64
.visible .entry blend_k0_leaf3() { ret; }
"""


def embedded(variant):
    code = code_of(variant)
    return replace(code, ptx=PTX, ir="; IR") if variant.kernel == "blend_k0_leaf3" else code


def test_the_cpu_build_runs_the_text_of_a_leaf_that_is_ptx(tmp_path):
    write_outputs(example(), tmp_path, code_of=embedded)
    program = compiled(tmp_path, tmp_path / "driver", "-O0")
    assert leaves(ran(program, "blend", 100, 7, MACHINE="Z=0", TRACE="1")) == ["3"]
    assert (tmp_path / "leaves/blend_k0_leaf3.ptx").read_text() == PTX
    assert (tmp_path / "leaves/blend_k0_leaf3.ll").read_text() == "; IR"


@needs_nvcc
def test_nvcc_embeds_ptx_and_never_sees_its_text(tmp_path):
    write_outputs(example(), tmp_path, code_of=embedded)
    source, target = tmp_path / "blend.cu", tmp_path / "cuda.o"
    warnings = ["-Xcompiler", ",".join(WARNINGS), "-Werror", "all-warnings"]
    succeed(["nvcc", "-arch=sm_80", *warnings, f"-I{tmp_path}", f"-I{tmp_path}/include", "-c", source, "-o", target])
    assert PTX.encode() in target.read_bytes()
    assert "blend_k0_leaf3(int" not in source.read_text().split("#if defined(METAFORK_CPU)")[0]


@pytest.mark.slow
@needs_nvcc
def test_nvcc_takes_every_generated_file(directory):
    warnings = ["-Xcompiler", ",".join(WARNINGS), "-Werror", "all-warnings"]
    includes = [f"-I{directory}", f"-I{directory}/include"]
    command = ["nvcc", "-arch=sm_80", "-fmad=false", *warnings, *includes, "-c", directory / "blend.cu"]
    succeed([*command, "-o", directory / "cuda.o"])
