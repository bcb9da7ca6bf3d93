"""The CPU build's blocks: real barriers, faults that are found, and speed that is good enough to test with."""

import os
from pathlib import Path

import pytest

from tests.processor_time import assert_within
from tests.runtime.compiling import CPLUSPLUS, INCLUDE, SANITIZE, WARNINGS, C, build, needs_nvcc, run, succeed

KERNELS = Path(__file__).with_name("kernels.cu")
SEVERAL = Path(__file__).with_name("several_files.cc")
VARIANTS = {
    "fast": ("-O2",),
    "checked": ("-O1", "-DMETAFORK_CHECK"),
    "sanitized": ("-O1", *SANITIZE),
    "portable": ("-O1", "-DMETAFORK_CPU_UCONTEXT", *SANITIZE),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    directory = tmp_path_factory.mktemp("blocks")
    built = {}

    def of(variant):
        if variant not in built:
            built[variant] = build(directory / variant, [KERNELS], *VARIANTS[variant])
        return built[variant]

    return of


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.sampled(1)
def test_barriers_separate(program, variant, order):
    environment = {**os.environ, "METAFORK_CPU_ORDER": order}
    done = succeed([program(variant), "multiply", "64", "16"], env=environment)
    assert done.stdout.startswith("same")
    done = succeed([program(variant), "reduce"], env=environment)
    assert done.stdout.split()[:12] == ["523776"] * 12


@pytest.mark.parametrize("variant", ["sanitized", "portable"])
def test_host_threads_do_not_share_blocks(program, variant):
    done = succeed([program(variant), "threads"])
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["same"] * 4 + ["end"]


def test_fibers_with_fake_stacks(program):
    environment = {**os.environ, "ASAN_OPTIONS": "detect_stack_use_after_return=1"}
    assert succeed([program("sanitized"), "multiply", "32", "8"], env=environment).stdout.startswith("same")


def test_a_block_of_1024_threads_and_256_rows_takes_less_than_two_seconds(program):
    for size in ("16", "32"):
        word, seconds = succeed([program("fast"), "multiply", "256", size]).stdout.split()
        assert word == "same"
        assert_within(float(seconds), 2)


@pytest.mark.parametrize("variant", ["fast", "sanitized"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["not_all_wait", "3"], "a thread waits at a barrier that another thread of its block never reached"),
        (["not_all_wait", "13"], "a thread waits at a barrier that another thread of its block never reached"),
        (["different_barriers"], "threads of one block wait at different barriers"),
        (["one_more_barrier"], "a thread"),
    ],
)
def test_a_barrier_that_not_all_threads_reach(program, variant, arguments, message):
    done = run([program(variant), *arguments])
    assert done.returncode < 0
    assert message in done.stderr
    assert f"{arguments[0]}: " in done.stderr
    assert "end" not in done.stdout


def warp_sums(threads):
    """Return what the kernel of that name computes."""
    values = [number + 1 for number in range(threads)]
    for _ in range(4):
        whole = [sum(values[first : first + 32]) for first in range(0, threads - threads % 32, 32)]
        total = sum(value % 1000003 for value in [*whole, *values[len(whole) * 32 :]])
        values = [total + number for number in range(threads)]
    return values


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("order", ["forward", "reverse"])
def test_shuffles_between_barriers(program, variant, order):
    environment = {**os.environ, "METAFORK_CPU_ORDER": order}
    for columns, rows in ((100, 1), (64, 1), (16, 4), (32, 1), (31, 1), (160, 5)):
        done = succeed([program(variant), "warp_sums", str(columns), str(rows)], env=environment)
        assert [int(line) for line in done.stdout.split()[:-1]] == warp_sums(columns * rows)


@pytest.mark.parametrize("variant", ["fast", "sanitized"])
@pytest.mark.parametrize("order", ["forward", "reverse"])
@pytest.mark.parametrize(
    "arguments",
    [
        *(["not_all_shuffle", first] for first in ("1", "31", "33", "63")),
        *(["shuffle_or_wait", first] for first in ("1", "63")),
        ["different_shuffles"],
    ],
)
def test_a_shuffle_that_not_all_lanes_reach(program, variant, order, arguments):
    done = run([program(variant), *arguments], env={**os.environ, "METAFORK_CPU_ORDER": order})
    assert done.returncode < 0
    assert "shuffle" in done.stderr
    assert "end" not in done.stdout


def test_the_last_thread_ends_while_others_wait(program):
    done = run([program("fast"), "not_all_wait", "1"], env={**os.environ, "METAFORK_CPU_ORDER": "reverse"})
    assert done.returncode < 0
    assert "a thread ends while others of its block wait at a barrier" in done.stderr


@pytest.mark.parametrize("first", ["0", "14"])
def test_a_barrier_that_all_or_none_reach_is_none_of_these(program, first):
    assert succeed([program("sanitized"), "not_all_wait", first]).stdout == "end\n"


def test_address_sanitizer_sees_the_end_of_shared_memory(program):
    assert succeed([program("sanitized"), "overrun", "7", "32"]).returncode == 0
    done = run([program("sanitized"), "overrun", "8", "32"])
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["overrun", "4", "32"], "first[4] is outside of its 4 elements of shared memory"),
        (["overrun", "-1", "32"], "first[-1] is outside of its 4 elements of shared memory"),
        (["overrun", "0", "28"], "shared array second (4 elements of 4 bytes at byte 16) does not lie in the 28 bytes"),
        (["too_large", "5"], "shared array first (5 elements of 4 bytes at byte 0) does not lie in the 16 bytes"),
        (["too_large", "-2"], "first[0] is outside of its 0 elements of shared memory"),
    ],
)
def test_every_access_is_checked(program, arguments, message):
    done = run([program("checked"), *arguments])
    assert done.returncode < 0
    assert message in done.stderr
    assert "block (0, 0, 0), thread (0, 0, 0)" in done.stderr


# An array has less than no element in a branch that no block goes into: nobody touches it.
@pytest.mark.parametrize("arguments", [["overrun", "3", "32"], ["too_large", "-1"]])
def test_what_is_in_bounds_passes_the_checks(program, arguments):
    assert succeed([program("checked"), *arguments]).stdout == "end\n"


def test_shared_memory_holds_no_number_at_the_start_of_a_block(program):
    assert succeed([program("checked"), "unset"]).stdout.startswith("nan")


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.sampled(1)
def test_each_file_of_a_program_has_its_own_blocks(tmp_path, level):
    flags = [*CPLUSPLUS, *WARNINGS, level, "-DMETAFORK_CHECK", f"-I{INCLUDE}", "-c", SEVERAL]
    succeed([*flags, "-DNAME=own", "-DWITH_MAIN", "-o", tmp_path / "own.o"])
    succeed([*flags, "-DNAME=other", "-o", tmp_path / "other.o"])
    succeed(["g++", tmp_path / "own.o", tmp_path / "other.o", "-o", tmp_path / "linked"])
    assert succeed([tmp_path / "linked"]).stdout == "same\n"


def test_a_c_compiler_can_link_it(tmp_path):
    succeed(["g++", "-std=c++17", "-x", "c++", "-DMETAFORK_CPU", f"-I{INCLUDE}", "-c", KERNELS, "-o", tmp_path / "k.o"])
    succeed([*C, tmp_path / "k.o", "-lm", "-o", tmp_path / "linked"])
    assert succeed([tmp_path / "linked", "multiply", "16", "8"]).stdout.startswith("same")


@needs_nvcc
def test_nvcc_takes_the_same_kernels(tmp_path):
    source = KERNELS.read_text().split("static int matrices")[0]
    (tmp_path / "kernels.cu").write_text(source)
    warnings = ["-Xcompiler", ",".join(WARNINGS), "-Werror", "all-warnings"]
    succeed(["nvcc", "-arch=sm_80", *warnings, f"-I{INCLUDE}", "-c", tmp_path / "kernels.cu", "-o", tmp_path / "k.o"])


def test_the_header_says_how_to_compile(tmp_path):
    (tmp_path / "none.cc").write_text('#include "metafork/device.h"\n')
    done = run(["g++", "-std=c++17", f"-I{INCLUDE}", "-c", tmp_path / "none.cc", "-o", tmp_path / "none.o"])
    assert "compile with nvcc, or with g++ -std=c++17 -x c++ -DMETAFORK_CPU" in done.stderr
