"""The programs that the rig calls: nvcc, ptxas, g++, and nvdisasm from PATH or from the PyPI package of its maker."""

import functools
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = Path(os.environ.get("METAFORK_RIG", HERE.parents[1] / "build" / "rig"))
"""Where the rig keeps what it builds."""


class MissingToolError(RuntimeError):
    """A program that is needed is not on this machine."""


def command(*words, where=None):
    """Run a program and return what it printed on both outputs; raise RuntimeError with that if it fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, cwd=where)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(word) for word in words)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def missing_tools(download=True):
    """Name the programs without which nothing runs here."""
    missing = [name for name in ("nvcc", "ptxas", "g++", "gcc") if shutil.which(name) is None]
    try:
        nvdisasm(download)
    except MissingToolError:
        missing.append("nvdisasm")
    return missing


def nvdisasm(download=True):
    """The disassembler; where PATH has none, the package nvidia-cuda-nvdisasm is fetched once."""
    found = shutil.which("nvdisasm")
    if found is not None:
        return Path(found)
    folder = WORK / "nvdisasm"
    if not list(folder.glob("**/bin/nvdisasm")) and download:
        wheels = WORK / "download"
        fetch = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", wheels, "nvidia-cuda-nvdisasm")
        try:
            command(*fetch)
        except RuntimeError as error:
            raise MissingToolError(f"no nvdisasm on PATH, and its package cannot be fetched: {error}") from None
        for wheel in wheels.glob("*nvdisasm*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
    for path in folder.glob("**/bin/nvdisasm"):
        path.chmod(0o755)
        return path
    raise MissingToolError("no nvdisasm on PATH")


def _built(name, source, *words):
    target = WORK / name
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        WORK.mkdir(parents=True, exist_ok=True)
        # Under another name first: a second process may be building the same.
        fresh = WORK / f"{name}.{os.getpid()}"
        command("g++", "-std=gnu++17", *words, "-o", fresh, source)
        fresh.rename(target)
    return target


@functools.cache
def runner():
    """The program that executes SASS."""
    # No contraction: the runner's own arithmetic is that of the instructions.
    return _built("sasstrace", HERE / "sasstrace.cpp", "-O3", "-march=native", "-ffp-contract=off")


@functools.cache
def runtime():
    """The shared library that stands in for the CUDA runtime."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise MissingToolError("no nvcc on PATH")
    # nvcc itself knows where its headers are, also where it is called through a wrapper.
    dry = command("nvcc", "--dryrun", "-c", "-x", "cu", os.devnull, "-o", os.devnull)
    includes = [line.split("=", 1)[1] for line in dry.splitlines() if "INCLUDES=" in line]
    words = [word.strip('"') for line in includes for word in line.split()]
    return _built("librigruntime.so", HERE / "runtime.cpp", "-O2", "-shared", "-fPIC", *words)
