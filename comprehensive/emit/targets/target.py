"""What a back end is: the code of leaves, how kernels stand in the generated file, how they are launched and built.

All else that is generated (header, conditions, selection, shapes of launches, drop-ins) is C and the same for all.  A
target comes with a header that defines what ``metafork/launch.h`` asks for; whatever is between the generated attempts
and that header is the target's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from msgspec import Struct

from metafork.analysis.analyses import Analyses, Hardware
from metafork.comprehensive.emit.identifiers import c_string
from metafork.comprehensive.emit.leaf_code import LeafCode, argument_bytes
from metafork.comprehensive.tree.schedule_tree import Variant
from metafork.runtime.machine import PRESETS, compute_capability, preset_name, presets_between


class NoCodeError(Exception):
    """A target has no code for a leaf; the message is the reason, as it stands in the report."""


class TargetOptionError(ValueError):
    """An option that a target does not have, or a value that it does not know."""


class Attempt(Struct, frozen=True):
    """A generated function that takes ``metafork_go``, ``metafork_s``, ``metafork_stream`` and more.

    It has filled ``*metafork_s`` and returned where that failed; ``arguments`` are the places that hold the kernel's
    arguments, in order, integers in the lower bytes of 64 bits, and ``trace`` the lines that trace a launch.
    ``values`` are those of the code's static parameters.
    """

    code: LeafCode
    arguments: tuple[str, ...]
    trace: tuple[str, ...]
    values: tuple[str, ...] = ()


class Package(Struct, frozen=True):
    """What a target adds to ``CMakeLists.txt``.

    ``languages`` are those of the project; ``library`` are commands that make the static library
    ``${metafork_target}`` of the generated files, and set ``metafork_libraries`` to what a linker is told beside it
    (for pkg-config); ``dependencies`` are those that find what it links against, in the package's configuration file
    (without quotes; variables have their values of the build).  ``remark`` ends a comment.
    """

    languages: str
    library: str
    dependencies: str = ""
    remark: str = ""


class Handles(Struct, frozen=True):
    """Types of C that a library has for queues and memory, where pointers of no type stand for them elsewhere.

    ``NAME_launch_SUFFIX`` takes them.  ``declared`` stands in the header, which includes none of the library's.
    """

    suffix: str
    queue: str
    memory: str
    declared: tuple[str, ...]


class Target(Protocol):
    """A back end.  It has no state: everything that it says follows from its arguments and fields."""

    @property
    def name(self) -> str:
        """What ``--backend`` calls it."""
        ...

    @property
    def hardware(self) -> Hardware:
        """What counters are to know of its GPUs; where they differ, so that no counter is too small for any."""
        ...

    @property
    def headers(self) -> tuple[str, ...]:
        """Headers of the runtime, by name, that its generated files include, whatever way they are built."""
        ...

    @property
    def own_headers(self) -> Mapping[str, str]:
        """Texts of headers that the runtime does not have, by name; they lie beside the others in ``metafork/``."""
        ...

    def aimed_at(self, architecture: str) -> Target:
        """Return the back end for a GPU (``--target``); itself where its files are for any."""
        ...

    def leaf_code(self, variant: Variant, analyses: Analyses | None) -> LeafCode:
        """Return the code of a leaf.  Raises ``NoCodeError``."""
        ...

    def device_name(self, stem: str) -> str:
        """Return the name of the generated file that has kernels, ``select`` and ``launch``."""
        ...

    def opening(self, stem: str) -> str:
        """Return what stands in front of that file's includes: a comment that says how to build it, and macros."""
        ...

    def kernel(self, code: LeafCode) -> str:
        """Return the text of one kernel there."""
        ...

    def launching(self, attempt: Attempt) -> list[str]:
        """Return the statements that check the shape, return where ``metafork_go`` is false, and launch."""
        ...

    def package(self, stem: str, *, allow_fma: bool) -> Package:
        """Return how the generated files are built.  Raises ``TargetOptionError``."""
        ...


def handles_of(target: object) -> Handles | None:
    """Return the types of a back end's handles; it says so in the attribute ``handles``, which it may leave out."""
    found = getattr(target, "handles", None)
    return found if isinstance(found, Handles) else None


def with_jit(target: Target, *, allow_fma: bool) -> Target:
    """Return a back end whose kernels are also compiled at run time.  Raises ``TargetOptionError``.

    It has a method ``jitting`` then, which it may leave out.
    """
    jitting = getattr(target, "jitting", None)
    if jitting is None:
        raise TargetOptionError(f"--jit is for --backend cuda and ptx: --backend {target.name} has no NVRTC")
    found: Target = jitting(allow_fma=allow_fma)
    return found


def with_lines(target: Target) -> Target:
    """Return a back end whose kernels say from which lines of the input they come.  Raises ``TargetOptionError``.

    It has a method ``with_lines`` then, which it may leave out.
    """
    own = getattr(target, "with_lines", None)
    if own is None:
        message = f"--line-directives is for --backend cuda and hip: kernels of --backend {target.name} are no C++"
        raise TargetOptionError(message)
    found: Target = own()
    return found


def for_machine(target: Target, machine: str) -> Target:
    """Return a back end for the preset of ``--machine``, if what it makes is for one kind of GPU anyway.

    It says so in the attribute ``follows_machine``, which it may leave out.
    """
    if getattr(target, "follows_machine", False) is True:
        for entry in machine.split(","):
            with suppress(TargetOptionError):
                target = target.aimed_at(entry.strip())
    return target


def refuse_other_machine(architecture: str, machine: str) -> None:
    """Raise ``TargetOptionError`` where code for a GPU (``sm_90``, ``gfx90a``) does not run on one of ``--machine``.

    Code for NVIDIA's runs on GPUs of its compute capability and later ones (``sm_90a`` on that one alone), code for
    AMD's on the same.  A machine that is given by numbers alone may be any.
    """
    nvidia = re.fullmatch(r"sm_(\d+)([af]?)", architecture)
    if nvidia is None and not architecture.startswith("gfx"):
        return  # no name of a GPU, as will be said
    for entry in machine.split(","):
        for preset in presets_between(entry) or (entry.strip(),):
            capability = compute_capability(preset) if preset_name(preset) in PRESETS else None
            if nvidia is None:
                runs = preset == architecture
            elif capability is not None:
                least = int(nvidia[1])
                runs = capability == least if nvidia[2] else capability >= least
            if capability is not None and not runs:
                raise TargetOptionError(f"code for --target {architecture} does not run on --machine {preset}")


MOST_ARGUMENT_BYTES = 32764
"""Bytes of arguments that kernels for NVIDIA's GPUs have at most (PTX ISA 8.1)."""


def checked_arguments(code: LeafCode) -> LeafCode:
    """Return the code of a kernel for NVIDIA's GPUs.  Raises ``NoCodeError`` where it has too many arguments."""
    taken = argument_bytes(code.kernel)
    if taken > MOST_ARGUMENT_BYTES:
        message = f"its arguments take {taken} bytes, more than the {MOST_ARGUMENT_BYTES} of a kernel's parameters"
        raise NoCodeError(message)
    return code


def loading(code: LeafCode) -> list[str]:
    """Return the statements of an attempt that load the kernels of a leaf from their PTX."""
    whole, large = ptx_names(code)
    return [
        "    const void *metafork_loaded[2] = {NULL, NULL};",
        f"    int metafork_failure = metafork_load(&{whole}, &metafork_loaded[0]);",
        f"    if (metafork_failure == METAFORK_OK) metafork_failure = metafork_load(&{large}, &metafork_loaded[1]);",
        "    if (metafork_failure != METAFORK_OK) return metafork_failure;",
        "    const void *const metafork_functions[] = {metafork_loaded[0], metafork_loaded[1]};",
    ]


def launching_a_function(attempt: Attempt) -> tuple[list[str], list[str]]:
    """Return the statements that check and trace, and those that launch one of ``metafork_functions``."""
    launch = "metafork_launch_kernel(metafork_functions[metafork_s->large], metafork_s, metafork_stream, metafork_p)"
    return [
        "    const int metafork_error = metafork_check_shape(metafork_s, metafork_functions);",
        "    if (metafork_error != METAFORK_OK || !metafork_go) return metafork_error;",
        *attempt.trace,
    ], [*pointers(attempt), f"    return metafork_range_ends({launch});"]


def pointers(attempt: Attempt) -> list[str]:
    """Return the statements that make ``metafork_p``, the pointers to the arguments of a kernel that a launch takes."""
    integers = [one for one in attempt.arguments if one.startswith("metafork_a[")]
    arrays = attempt.arguments[len(integers) :]
    in_order = [
        *(f"metafork_a[{place}]" for place in range(len(integers))),
        *(f"metafork_d[{place}]" for place in range(len(arrays))),
    ]
    if in_order and list(attempt.arguments) == in_order:
        given = f"metafork_a, {len(integers)}, metafork_d, {len(arrays)}"
        return [f"    void *metafork_p[{len(in_order)}];", f"    metafork_point(metafork_p, {given});"]
    listed = ", ".join(f"(void *)&{argument}" for argument in attempt.arguments) or "NULL"
    return [f"    void *metafork_p[] = {{{listed}}};"]


def embedded(code: LeafCode) -> str:
    """Return the definitions of a leaf's kernels as PTX in C, one string literal a line."""
    texts = dict(zip(ptx_names(code), (code.whole or code.ptx, code.ptx), strict=True))
    return "".join(
        f"static metafork_ptx {name} = {{\n{_literals(text)},\n"
        f"    {c_string(code.kernel.name)}, METAFORK_NOT_LOADED}};\n"
        for name, text in texts.items()
        if text is not None
    )


def _literals(text: str) -> str:
    return "\n".join(f"    {c_string(line)}" for line in text.splitlines(keepends=True))


def ptx_names(code: LeafCode) -> tuple[str, str]:
    """Return the names of the variables that hold a leaf's PTX for whole grids and for any launch."""
    name = f"{code.kernel.name}_ptx"
    return (name if code.whole is None else f"{code.kernel.name}_whole_ptx", name)
