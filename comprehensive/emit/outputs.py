"""Writing the output directory: complete files under temporary names first, then one rename each.

An interrupted run leaves the last good output: until every file is complete, none of the old ones is touched, and
signals wait during the renames.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Protocol

from metafork.comprehensive.emit.cmake_file import cmake_file
from metafork.comprehensive.emit.device_file import RUNTIME, Codes, device_file, runtime_file
from metafork.comprehensive.emit.generation import (
    header_name,
    header_text,
    marked,
    number_of,
    runtime_marked,
)
from metafork.comprehensive.emit.header_file import header_file
from metafork.comprehensive.emit.host.host_file import host_file
from metafork.comprehensive.emit.identifiers import c_string
from metafork.comprehensive.emit.leaf_code import CodeOf, LeafCode
from metafork.comprehensive.emit.own_files import see_that_all_are_ours
from metafork.comprehensive.emit.targets.cuda import TARGET as CUDA
from metafork.comprehensive.emit.targets.target import Target, handles_of
from metafork.comprehensive.tree.schedule_tree import ScheduleTree, Variant
from metafork.ir.messages.line_markers import presumed_lines
from metafork.ir.messages.source import Source
from metafork.ir.translation_unit import TranslationUnit
from metafork.printing.input_lines import END, resolved


class Optimized(Protocol):
    """What a finished run has: the file, and the tree of each of its schedules, in order."""

    @property
    def unit(self) -> TranslationUnit:
        """The parsed file."""
        ...

    @property
    def schedules(self) -> Sequence[ScheduleTree]:
        """The trees."""
        ...


def runtime_include_dir() -> Path:
    """Return the directory that generated files are compiled with as ``-I``."""
    return Path(str(resources.files("metafork.runtime").joinpath("include"))).resolve()


def rendered_files(
    result: Optimized,
    *,
    code_of: CodeOf | None = None,
    allow_fma: bool = False,
    generation: str | None = None,
    target: Target = CUDA,
    directory: Path | None = None,
) -> dict[str, str]:
    """Return the linked files by their path inside of the output directory: header, kernels, host file, CMake, runtime.

    ``directory`` is that directory, where it is known: from there the input's own headers are found.
    Leaves with PTX also have it, and its IR, under ``leaves/``.  ``code_of`` is by default the target's own code, and
    ``generation``, the marker to carry, one that is computed from the files.  Raises ``NoCodeError`` for a leaf that
    the target has no code for, ``TargetOptionError`` for an option that it does not have.
    """
    if code_of is None:

        def code_of(variant: Variant) -> LeafCode:
            return target.leaf_code(variant, None)

    unit, trees = result.unit, result.schedules
    name = unit.name
    codes: Codes = {tree.program.name: [[*map(code_of, leaf.variants)] for leaf in tree.leaves] for tree in trees}
    headers = {
        header: (runtime_include_dir() / "metafork" / header).read_text(encoding="utf-8") for header in target.headers
    }
    headers |= target.own_headers
    runtime = number_of(headers)
    device = target.device_name(name)
    texts = {
        f"{name}.h": header_file(unit, trees, handles_of(target)),
        device: device_file(unit, trees, codes, target),
        f"{name}_host.c": host_file(unit, trees),
    }
    if generation is None:
        generation = number_of({**texts, **headers})
    files = {
        path: marked(text, path, name, generation, None if path.endswith(".h") else runtime)
        for path, text in texts.items()
    }
    place = device if directory is None else str((directory / device).absolute())
    files[device] = _with_lines(files[device], place, unit.source)
    files[header_name(name)] = header_text(name, generation)
    files[target.device_name(RUNTIME)] = runtime_file(target)
    files["CMakeLists.txt"] = cmake_file(
        name, generation, target.package(name, allow_fma=allow_fma), _own_folders(unit, directory)
    )
    for leaf_codes in codes.values():
        for code in (code for variants in leaf_codes for code in variants):
            files |= _leaf_files(code)
    files["include/metafork.h"] = (runtime_include_dir() / "metafork.h").read_text(encoding="utf-8")
    for header, text in headers.items():
        files[f"include/metafork/{header}"] = runtime_marked(header, text, runtime)
    return files


def _with_lines(text: str, path: str, source: Source) -> str:
    """Return the file of kernels with directives for lines of the input, where its kernels have markers for them."""
    if f"\n{END}\n" not in text:
        return text
    name = str(Path(source.name).absolute()) if Path(source.name).is_file() else source.name
    places = presumed_lines(source.text, c_string(name)[1:-1])
    return resolved(text, c_string(path)[1:-1], lambda line: places[line - 1])


def _own_folders(unit: TranslationUnit, directory: Path | None) -> list[str]:
    """Return where own headers of the input are looked for, if it has any, seen from a directory."""
    if directory is None or not (unit.headers or unit.source.folders):
        return []
    found = [*map(Path, unit.source.folders), Path(unit.source.name).parent]
    return list(dict.fromkeys(os.path.relpath(one.resolve(), directory.resolve()) for one in found if one.is_dir()))


def _leaf_files(code: LeafCode) -> dict[str, str]:
    texts = {"ll": code.ir, "ptx": code.ptx}
    return {f"leaves/{code.kernel.name}.{kind}": text for kind, text in texts.items() if text is not None}


def write_outputs(
    result: Optimized,
    directory: Path,
    *,
    code_of: CodeOf | None = None,
    allow_fma: bool = False,
    extra: Mapping[str, str | bytes] | None = None,
    depfile: Path | None = None,
    target: Target = CUDA,
) -> tuple[Path, ...]:
    """Write everything that users link, and ``extra`` files (by path inside of the directory); return their paths.

    ``depfile`` gets a make rule that says that the outputs depend on the source and its headers.  Raises ``OSError``
    where the directory cannot be written, or a folder or a link stands in the way, and ``NotOursError`` for files that
    metafork did not write; nothing is changed then.
    """
    linked = rendered_files(result, code_of=code_of, allow_fma=allow_fma, target=target, directory=directory)
    files: dict[str, str | bytes] = {**linked, **(extra or {})}
    outputs = dict(files)
    if depfile is not None:
        targets = [str(directory / name) for name in files if "/" not in name]
        sources = (result.unit.source.name, *result.unit.headers)
        outputs[str(depfile.absolute())] = make_rule(targets, sources)
    see_that_all_are_ours(directory, files, depfile)
    written = write_files(directory, outputs)
    _remove_stale_leaves(directory, result.unit.name, files)
    return written[: len(files)]


def write_files(directory: Path, files: Mapping[str, str | bytes]) -> tuple[Path, ...]:
    """Write files so that each is either the old one or complete, and none is new unless all are complete.

    Files that have their text already are left alone, so that nothing is built anew for them.  Raises ``OSError``,
    where a folder stands in the place of a file or a link in that of a folder inside of ``directory`` before anything
    is changed.
    """
    pending: list[tuple[Path, Path]] = []
    path = directory
    for name in list(files):
        _see_that_nothing_is_in_the_way(directory, directory / name)
    try:
        for name, text in files.items():
            path = directory / name
            written = text.encode(errors="surrogateescape") if isinstance(text, str) else text
            if _has(path, written):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            pending.append((Path(temporary), path))
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(written)
                # mkstemp makes files for their owner alone; outputs have the modes of other new files.
                os.fchmod(stream.fileno(), 0o666 & ~_umask())
        with _signals_held():
            for temporary_path, path in pending:
                temporary_path.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a full disk names no file
        raise
    finally:
        for temporary_path, _ in pending:
            temporary_path.unlink(missing_ok=True)
    return tuple(directory / name for name in files)


def _has(path: Path, content: bytes) -> bool:
    """Say whether a file has this content already; one that cannot be read, or is a link, is written."""
    try:
        return path.is_file() and not path.is_symlink() and path.read_bytes() == content
    except OSError:
        return False


def _see_that_nothing_is_in_the_way(directory: Path, path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        raise IsADirectoryError(errno.EISDIR, "a folder stands where a file is to be written", str(path))
    if path.is_relative_to(directory):
        for folder in path.relative_to(directory).parents:
            if folder.parts and (directory / folder).is_symlink():
                # What is written or removed behind it would lie elsewhere.
                raise NotADirectoryError(
                    errno.ENOTDIR, "a link stands where a folder is needed", str(directory / folder)
                )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _signals_held() -> Iterator[None]:
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _remove_stale_leaves(directory: Path, stem: str, files: Collection[str]) -> None:
    """Remove leaf files of an earlier run that had more leaves; nothing else, and nothing behind a link."""
    pattern = re.compile(rf"{re.escape(stem)}_k\d+_leaf\d+(?:_v\d+|_instance\d+)?\.(?:mf|ll|ptx|o)")
    leaves = directory / "leaves"
    for path in () if leaves.is_symlink() else leaves.glob(f"{stem}_k*"):
        if pattern.fullmatch(path.name) and f"leaves/{path.name}" not in files:
            path.unlink()


def make_rule(targets: Sequence[str], sources: Sequence[str]) -> str:
    """Return the rule that says that targets depend on sources."""
    return f"{' '.join(map(_make_escaped, targets))}: {' '.join(map(_make_escaped, sources))}\n"


def _make_escaped(path: str) -> str:
    return path.replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ")
