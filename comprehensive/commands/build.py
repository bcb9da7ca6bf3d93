"""``metafork build FILE``: a shared library, or a static one, beside its header."""

from __future__ import annotations

from pathlib import Path

import click

from metafork.comprehensive.building.compilers import BACKENDS
from metafork.comprehensive.commands.faults import (
    InputFile,
    chosen_options,
    diagnostics_option,
    fma_option,
    lines_option,
    machine_option,
    mistakes_of_options,
    order_option,
    preprocessor_options,
    print_diagnostics,
    read_source,
    reassociate_option,
    static_option,
)
from metafork.comprehensive.commands.progress import Progress


@click.command()
@click.argument("file", type=InputFile())
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="By default libNAME.so.")
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default=BACKENDS[0],
    show_default=True,
    help="What kernels become; a C compiler is enough for ptx and opencl, which look for a device at run time.",
)
@click.option("--cpu", is_flag=True, help="Run kernels on the processor, also where there is a GPU.")
@click.option("--static-library", is_flag=True, help="Make libNAME.a.")
@click.option("--depfile", type=click.Path(dir_okay=False, path_type=Path), help="Write a make rule: library, input.")
@lines_option
@chosen_options
@machine_option
@static_option
@order_option
@fma_option
@reassociate_option
@preprocessor_options
@diagnostics_option
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    output: Path | None,
    backend: str,
    cpu: bool,
    static_library: bool,
    depfile: Path | None,
    line_directives: bool,
    counters: list[str] | None,
    strategies: list[str] | None,
    plugins: tuple[str, ...],
    machine: str | None,
    static: tuple[str, ...],
    order: str,
    fma: bool,
    reassociate: bool,
    definitions: tuple[str, ...],
    folders: tuple[str, ...],
    form: str,
) -> None:
    """Optimize a MetaFork file and compile it into a library.

    nvcc compiles for the GPU of this machine where there is one; else kernels run on the processor.
    """
    from metafork.comprehensive.building.commands import BuildError
    from metafork.comprehensive.building.library import build
    from metafork.comprehensive.emit import NotOursError
    from metafork.comprehensive.options import asked_static
    from metafork.ir.messages.diagnostics import DiagnosticsError

    source = None
    try:
        source = read_source(file, definitions, folders)
        with mistakes_of_options(), Progress() as progress:
            made = build(
                source,
                output,
                backend=backend,
                cpu=True if cpu else None,
                static_library=static_library,
                depfile=depfile,
                line_directives=line_directives,
                counters=counters,
                strategies=strategies,
                plugins=plugins,
                machine=machine,
                static=asked_static(static, "auto"),
                order=order,
                fma=fma,
                reassociate=reassociate,
                progress=progress.explored,
                compiling=progress.show,
            )
    except DiagnosticsError as error:
        print_diagnostics(error.diagnostics, {} if source is None else {source.name: source.text}, form)
        context.exit(1)
    except (BuildError, NotOursError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename or output} cannot be written: {error.strerror}") from error
    click.echo(f"wrote {made}")
