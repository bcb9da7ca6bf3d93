"""``metafork render TREE.json [-o out.svg]``: draw a tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click


@click.command()
@click.argument("tree", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write, .svg or .dot; standard output by default.",
)
@click.option(
    "--full", is_flag=True, help="Draw also the conditions that the path has already decided, and chains of any length."
)
def command(tree: Path, output: Path | None, full: bool) -> None:
    """Draw a *.tree.json file as SVG (or as DOT text, for an output that ends in .dot)."""
    from comprehensive.emit import write_files
    from comprehensive.tree import render, tree_reading
    from comprehensive.tree.tree_fields import TreeFormatError

    try:
        document = tree_reading.load(tree)
    except TreeFormatError as error:
        raise click.ClickException(f"{tree}: {error}") from error
    text = render.dot(document, full)
    if output is None or output.suffix != ".dot":
        try:
            text = render.svg(text)
        except render.NoGraphvizError as error:
            raise click.ClickException(str(error)) from error
        except render.TooLargeError as error:
            raise click.ClickException(f"{tree}: {error}; -o NAME.dot writes the drawing as text") from error
        except subprocess.CalledProcessError as error:
            raise click.ClickException(f"Graphviz failed: {error.stderr.strip()}") from error
    if output is None:
        click.echo(text, nl=False)
    else:
        write_files(output.parent, {output.name: text})
