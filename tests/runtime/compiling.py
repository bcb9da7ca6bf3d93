"""Compile C and C++ against the runtime's headers, with warnings as errors."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import metafork

CMAKE = shutil.which("cmake", path=Path(sys.executable).parent) or shutil.which("cmake")
INCLUDE = Path(metafork.__file__).resolve().parent / "runtime" / "include"
WARNINGS = ("-Wall", "-Wextra", "-Werror")
CALLED = ("--param", "asan-instrumentation-with-call-threshold=0")
"""AddressSanitizer calls what checks an access: programs compile in two thirds of the time, and run slower."""
HEAP_ALONE = (*CALLED, "--param", "asan-globals=0", "--param", "asan-stack=0")
"""Only what malloc has given is watched, for programs whose arrays all are: they compile in half of the time."""
SANITIZE = ("-fsanitize=address,undefined", "-fsanitize-undefined-trap-on-error", *CALLED)
"""Undefined behaviour ends the program by a signal, without a word: that compiles in three fifths of the time."""
CPLUSPLUS = ("g++", "-std=c++17", "-x", "c++", "-DMETAFORK_CPU")
C = ("gcc", "-std=gnu11")

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="NO NVCC: generated CUDA is not compiled here")


def run(command, **options):
    """Run a command and return it finished; output is text."""
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)


def succeed(command, **options):
    """Run a command that must succeed, silently where it compiles."""
    done = run(command, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done


def build(target, sources, *flags, compiler=CPLUSPLUS, include=INCLUDE):
    """Compile and link sources into a program."""
    succeed([*compiler, *WARNINGS, f"-I{include}", *flags, *sources, "-o", target, "-lm"])
    return target


def planted(directory, harness, faults):
    """Build a harness whose variable ``planted`` says which fault is there.

    A fault is the header, what is replaced in it (between « and »), and by what.
    """
    include = shutil.copytree(INCLUDE, directory / "include")
    for number, (header, marked, other) in enumerate(faults, 1):
        before, text, after = re.split("[«»]", marked)
        whole = (include / "metafork" / header).read_text()
        assert whole.count(before + text + after) == 1, marked
        fault = f"(planted == {number} ? ({other}) : ({text}))"
        (include / "metafork" / header).write_text(whole.replace(before + text + after, before + fault + after))
    launch = include / "metafork" / "launch.h"
    launch.write_text("extern int planted;\n" + launch.read_text())
    return build(directory / harness.stem, [harness], "-O0", f"-I{harness.parent}", include=include)


def built_with_pkg_config(prefix, name, source, program):
    """Move an installation elsewhere, and build a C program with what pkg-config then tells; return it."""
    moved = program.with_name("moved")
    shutil.move(prefix, moved)
    (found,) = moved.glob(f"lib*/**/{name}.pc")
    if shutil.which("pkg-config") is None:
        pytest.skip("NO PKG-CONFIG: what it tells is not tried")
    told = succeed(["pkg-config", "--cflags", "--libs", name], env={**os.environ, "PKG_CONFIG_PATH": found.parent})
    before = [one for one in told.stdout.split() if one.startswith("-I")]
    after = [one for one in told.stdout.split() if not one.startswith("-I")]
    succeed([*C, *before, source, *after, "-o", program])
    return program
