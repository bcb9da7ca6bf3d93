"""Standard streams as they are: closed, full, of another encoding than UTF-8, or a terminal that knows no colours."""

from __future__ import annotations

import codecs
import errno
import os
import sys
import tempfile
from contextlib import suppress
from typing import TextIO

import click

_OF_OUTPUT = frozenset({errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT, errno.EPIPE})
"""What writing to an open file says, which names none."""


def prepare_streams() -> None:
    """Make writing to closed streams an error, and letters that a stream has not, no error.

    File names that are no text are written as the bytes that they are.
    """
    codecs.register_error("metafork", _otherwise)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            # What is opened next must not take its place.  Standard output is open for reading only.
            os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_RDWR)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="metafork")


def _otherwise(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return bytes for what stands for bytes, and ``?`` for other letters."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    found = [ord(one) - 0xDC00 if 0xDC80 <= ord(one) <= 0xDCFF else ord("?") for one in letters]
    return bytes(found), error.end


def colored(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that is to have colours (https://no-color.org)."""
    return moves_its_cursor(stream) and not os.environ.get("NO_COLOR")


def moves_its_cursor(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that can do more than print."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def give_up(error: OSError) -> None:
    """Say that the system refuses something, on standard error if that can be written, and let go of both."""
    said = error.strerror or str(error)
    if error.filename is not None:
        said = f"{os.fsdecode(error.filename)}: {said}"
    elif error.errno in _OF_OUTPUT:
        said = f"standard output cannot be written: {said}"
    if error.filename is not None and os.fsdecode(error.filename).startswith(tempfile.gettempdir()):
        said += "; TMPDIR may name another folder for temporary files"
    with suppress(OSError):
        click.echo(f"Error: {said}", err=True)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
