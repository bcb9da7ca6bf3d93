"""``metafork.build``: a file to a library beside its header; ``cached`` keeps libraries for later runs.

A library is kept under all that it was made of: the text, its own headers, the options, the compilers and metafork
itself.  It is built in a folder of its own, which is renamed when it is whole, so that two processes cannot disturb
each other; a library that is not what it was is built anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from metafork.comprehensive.building.commands import Commands
from metafork.comprehensive.building.compilers import BACKENDS, Toolchain, c_toolchain, make_library, toolchain
from metafork.comprehensive.building.runtime_object import runtime_object
from metafork.comprehensive.emit import rendered_files, write_files
from metafork.comprehensive.emit.outputs import make_rule
from metafork.comprehensive.emit.own_files import see_that_all_are_ours
from metafork.comprehensive.emit.targets.cuda import TARGET as CUDA
from metafork.comprehensive.emit.targets.table import target
from metafork.comprehensive.emit.targets.target import Target, TargetOptionError
from metafork.comprehensive.leaf_files import LeafTexts
from metafork.comprehensive.optimize import Result, optimize, source_of
from metafork.ir.messages.source import Source

LIBRARY, TREE, CHECKSUM = "library.so", "tree.json", "checksum"


def build(
    path_or_text: str | PathLike[str] | Source,
    output: str | PathLike[str] | None = None,
    *,
    backend: str = "cuda",
    cpu: bool | None = None,
    static_library: bool = False,
    depfile: str | PathLike[str] | None = None,
    line_directives: bool = False,
    compiling: Callable[[str], None] | None = None,
    **options: Any,
) -> Path:
    """Optimize a MetaFork file and compile it into a shared library (or a static one); return where that is.

    The header lies beside it.  ``output`` is by default ``libNAME.so`` (``libNAME.a``) in the working directory.  nvcc
    compiles for the GPU of this machine where there is one; else, or where ``cpu`` is true, kernels run on the
    processor.  With ``backend="ptx"`` or ``"opencl"`` a C compiler is enough, and the library looks for a device when
    it runs.  ``depfile`` gets a make rule: the library, and the files that it was made of.  With ``line_directives``,
    debuggers and profilers show the lines of the MetaFork file.
    ``compiling`` is told when the compilers begin.
    ``options`` are those of ``metafork.optimize``.  Raises what that raises, ``BuildError`` where a compiler fails,
    ``NotOursError`` where a header that metafork did not write is in the way, ``TargetOptionError`` for a back end that
    is not built here or does not go with the options, and ``OSError``.
    """
    way, tools = _way(backend, cpu, lines=line_directives)
    source = source_of(path_or_text)
    result = optimize(source, **{"static": "auto", "hardware": way.hardware, **options})
    name = result.unit.name
    library = Path(output) if output is not None else Path(f"lib{name}.{'a' if static_library else 'so'}")
    with tempfile.TemporaryDirectory(prefix="metafork-build-") as temporary:
        folder = Path(temporary)
        if compiling is not None:
            compiling(f"{name}: {Path(tools.device[0]).name} compiles the kernels")
        files = _made(result, way, tools, folder, static=static_library)
        outputs: dict[str, str | bytes] = {one: text for one, text in files.items() if one.endswith(".h")}
        see_that_all_are_ours(library.parent, outputs, None)
        outputs[library.name] = (folder / LIBRARY).read_bytes()
        if depfile is not None:
            sources = (result.unit.source.name, *result.unit.headers)
            outputs[str(Path(depfile).absolute())] = make_rule([str(library)], sources)
        write_files(library.parent, outputs)
    return library


def _way(backend: str, cpu: bool | None, *, lines: bool) -> tuple[Target, Toolchain]:
    if backend not in BACKENDS:
        raise TargetOptionError(f"back ends that can be built here: {', '.join(BACKENDS)}; not {backend}")
    if backend == "cuda":
        tools = toolchain(cpu)
        return (CUDA.with_lines(), tools.with_lines()) if lines else (CUDA, tools)
    if cpu or lines:
        raise TargetOptionError(f"{'--cpu' if cpu else '--line-directives'} needs --backend cuda")
    return target(backend), c_toolchain()


def _made(result: Result, way: Target, tools: Toolchain, folder: Path, *, static: bool = False) -> dict[str, str]:
    """Write the generated files into a folder and make the library there; return their texts."""
    texts = LeafTexts(result.analyses, None, way)
    if way.name != "cuda":  # which has code for every leaf
        result = texts.in_time(result, None)
    files = rendered_files(result, code_of=texts.code_of, target=way)
    write_files(folder, files)
    source = result.unit.source
    places = [*map(Path, source.folders), *([Path(source.name).parent] if result.unit.headers else [])]
    own = [*(f"-D{one}" for one in source.definitions), *(f"-I{one.resolve()}" for one in places)]
    name = result.unit.name
    runtime = runtime_object(Commands(folder), tools.device, way)
    make_library(tools, folder, name, way.device_name(name), runtime, folder / LIBRARY, own, static=static)
    return files


def cached(source: Source, headers: tuple[str, ...], cpu: bool | None, options: dict[str, Any]) -> tuple[Path, str]:
    """Return the library of a text and its tree as JSON, built now or by an earlier run.

    Raises as ``build`` does.
    """
    tools = toolchain(cpu)
    key = _key(source, headers, tools, options)
    home = user_cache_path("metafork") / "builds"
    kept = _whole(home / key)
    if kept is not None:
        return kept
    result = optimize(source, **options)
    with _new_folder(home) as folder:
        _made(result, CUDA, tools, folder)
        (folder / TREE).write_text(result.to_json(), encoding="utf-8")
        (folder / CHECKSUM).write_text(_checksum(folder), encoding="utf-8")
        for path in folder.iterdir():
            if path.name not in (LIBRARY, TREE, CHECKSUM):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        place = _placed(folder, home / key)
        found = _whole(place)
    if found is None:
        raise OSError(f"{place}: the library cannot be read back")
    return found


def _key(source: Source, headers: tuple[str, ...], tools: Toolchain, options: dict[str, Any]) -> str:
    parts = [source.name, source.text, *source.definitions, *source.folders, *tools.identity]
    parts += [Path(one).read_text(encoding="utf-8", errors="replace") for one in headers]
    parts += [f"{name}={value!r}" for name, value in sorted(options.items())]
    for folder, _, names in sorted(os.walk(Path(__file__).parents[2], followlinks=True)):
        for path in (Path(folder, name) for name in sorted(names)):
            if path.suffix in (".py", ".h"):
                state = path.stat()
                parts.append(f"{path} {state.st_size} {state.st_mtime_ns}")
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode(errors="surrogateescape"))
        digest.update(b"\0")
    return digest.hexdigest()


def _whole(folder: Path) -> tuple[Path, str] | None:
    """Return what a folder of the cache holds, ``None`` where it is not there or not what it was."""
    try:
        if (folder / CHECKSUM).read_text(encoding="utf-8") != _checksum(folder):
            return None
        return folder / LIBRARY, (folder / TREE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _checksum(folder: Path) -> str:
    return hashlib.sha256((folder / LIBRARY).read_bytes() + (folder / TREE).read_bytes()).hexdigest()


@contextmanager
def _new_folder(home: Path) -> Iterator[Path]:
    """Give a folder beside the cache's, or elsewhere where that cannot be written; it goes unless it was renamed."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".new-", dir=home))
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="metafork-build-"))
    try:
        yield folder
    finally:
        if folder.parent == home:
            shutil.rmtree(folder, ignore_errors=True)


def _placed(folder: Path, place: Path) -> Path:
    """Rename a folder that is whole to its place; return where it is: another process may have been there first."""
    if folder.parent != place.parent:
        return folder  # the cache cannot be written: the library lives where it was made
    if place.exists():
        if _whole(place) is not None:
            return place
        damaged = Path(tempfile.mkdtemp(prefix=".old-", dir=place.parent))
        place.replace(damaged)
        shutil.rmtree(damaged, ignore_errors=True)
    try:
        folder.replace(place)
    except OSError:
        if _whole(place) is None:
            raise
    return place
