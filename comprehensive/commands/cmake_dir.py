"""``metafork cmake-dir``: the directory of ``MetaFork.cmake``, for ``CMAKE_MODULE_PATH``."""

from __future__ import annotations

import click


@click.command(name="cmake-dir")
def command() -> None:
    """Print the directory of MetaFork.cmake."""
    from metafork.comprehensive.emit import runtime_include_dir

    click.echo(runtime_include_dir().parent / "cmake")
