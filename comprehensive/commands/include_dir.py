"""``metafork include-dir``: the directory to compile generated files with, for ``-I``."""

from __future__ import annotations

import click


@click.command(name="include-dir")
def command() -> None:
    """Print the directory of the C runtime headers."""
    from metafork.comprehensive.emit import runtime_include_dir

    click.echo(runtime_include_dir())
