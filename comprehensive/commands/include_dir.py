"""``metafork include-dir``: the directory to compile generated files with, for ``-I``."""

from __future__ import annotations

from pathlib import Path

import click

import metafork


@click.command(name="include-dir")
def command() -> None:
    """Print the directory of the C runtime headers."""
    click.echo(Path(metafork.__file__).resolve().parent / "runtime" / "include")
