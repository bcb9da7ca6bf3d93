"""The runtime, compiled once for a compiler and its options; the object file is kept in the user's cache.

Its name has a digest of its content, so that a damaged file is not taken.  Each is written under another name and
renamed, so that two processes do not disturb each other.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path

from metafork.comprehensive.building.commands import Commands
from metafork.comprehensive.building.compilers import identity_of
from metafork.comprehensive.emit import runtime_include_dir
from metafork.comprehensive.emit.device_file import RUNTIME, runtime_file
from metafork.comprehensive.emit.targets.cuda import TARGET as CUDA
from metafork.comprehensive.emit.targets.target import Target


def runtime_object(commands: Commands, compiling: Sequence[str], target: Target = CUDA) -> str:
    """Return the object that ``compiling`` makes (a compiler and its options) of the runtime of a back end.

    It is made now, or was by an earlier run.  Raises ``BuildError`` and ``OutOfTimeError``.
    """
    text = runtime_file(target)
    digest = hashlib.sha256("\0".join([text, *compiling, *identity_of(compiling)]).encode(errors="surrogateescape"))
    for header in sorted((runtime_include_dir() / "metafork").glob("*.h")):
        digest.update(header.read_bytes())
    key = digest.hexdigest()[:32]
    home = user_cache_path("metafork") / "runtime"
    for kept in home.glob(f"{key}-*.o"):
        if kept.name == _name(key, kept):
            return str(kept)
    made = commands.directory / f"{RUNTIME}_{key[:8]}.o"
    source = made.with_suffix(Path(target.device_name(RUNTIME)).suffix)
    source.write_text(text, encoding="utf-8")
    commands.run((*compiling, f"-I{runtime_include_dir()}", "-c", source.name, "-o", made.name))
    try:
        home.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=home)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(made.read_bytes())
        return str(Path(temporary).replace(home / _name(key, made)))
    except OSError:
        return str(made)  # the cache cannot be written


def _name(key: str, content: Path) -> str:
    return f"{key}-{hashlib.sha256(content.read_bytes()).hexdigest()[:32]}.o"
