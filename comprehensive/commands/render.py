"""``metafork render TREE.json [-o out.svg]``: draw a tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click

from metafork.comprehensive.commands.faults import InputFile, refuse_source, refuse_to_overwrite, write_output


@click.command()
@click.argument("tree", type=InputFile("tree.json"))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write this file: .svg, .dot, or what Graphviz writes, such as .png. By default SVG on standard output.",
)
@click.option(
    "--full", is_flag=True, help="Draw also the conditions that the path has already decided, and chains of any length."
)
def command(tree: Path, output: Path | None, full: bool) -> None:
    """Draw a *.tree.json file as SVG, as DOT text or as an image, whatever the output's name ends in."""
    from metafork.comprehensive.tree import render, tree_reading
    from metafork.comprehensive.tree.tree_fields import TreeFormatError

    try:
        document = tree_reading.load(tree)
    except TreeFormatError as error:
        stem = tree.stem
        refuse_source(tree, f"then draw it:        metafork render {stem}.out/{stem}.tree.json -o {stem}.svg")
        raise click.ClickException(f"{tree}: {error}") from error
    if output is not None:
        refuse_to_overwrite(output, tree)
    kind = "svg" if output is None else output.suffix.removeprefix(".").lower() or "svg"
    drawing: str | bytes = render.dot(document, full)
    if kind not in ("dot", "gv"):
        try:
            drawing = render.svg(str(drawing)) if kind == "svg" else render.drawn(str(drawing), kind)
        except render.UnknownKindError as error:
            raise click.UsageError(f"{output} cannot be drawn: {error}") from error
        except render.NoGraphvizError as error:
            raise click.ClickException(str(error)) from error
        except render.TooLargeError as error:
            raise click.ClickException(f"{tree}: {error}; -o NAME.dot writes the drawing as text") from error
        except subprocess.CalledProcessError as error:
            raise click.ClickException(f"Graphviz failed: {error.stderr.strip()}") from error
    if output is None:
        click.echo(drawing.encode() if isinstance(drawing, str) else drawing, nl=False)
    else:
        write_output(output, drawing)
