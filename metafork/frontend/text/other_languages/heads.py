"""Heads of functions as a help shows them: with one more parameter, the size of a block."""

from __future__ import annotations

import re
from collections.abc import Collection

from metafork.frontend.text.other_languages.advice import Advice

_LOOP = re.compile(r"(meta_)?for\s*\(\s*(?:[\w ]+?\s)?(\w+)\s*=[^;]*;[^;<]*<\s*([^;]+);")
_FUNCTION = re.compile(r"^[ \t]*([A-Za-z_][\w \t\n*]*?\((?:[^(){};]|\([^(){};]*\))*\))\s*\{", re.MULTILINE)
_NO_FUNCTION = re.compile(r"(if|for|while|switch|else|meta_\w+|do)\b")


def loops_of(text: str, *, serial: bool = False) -> list[tuple[str, str]]:
    """Return the variables and ends of the ``meta_for``s in a text; where ``serial``, of all loops."""
    return [(one[2], one[3].strip()) for one in _LOOP.finditer(text) if serial or one[1]]


def with_block_size(head: str, words: Collection[str]) -> tuple[str, str]:
    """Return the name of a block size, and a function's head with that parameter, empty where it has it already.

    ``words`` are those of the function, which name something else.
    """
    if re.search(r"\bint\s+B\b", head.partition("(")[2]):
        return "B", ""
    block = next(name for name in ("B", "block", "block_size", "size_of_block") if name not in words)
    return block, with_parameter(head, f"int {block}")


def with_parameter(head: str, parameter: str) -> str:
    """Return a function's head with a parameter in front of the first array: extents may name it."""
    before, _, inside = head.rstrip().removesuffix(")").partition("(")
    given = [] if inside.strip() in ("", "void") else [" ".join(one.split()) for one in inside.split(",")]
    place = next((number for number, one in enumerate(given) if "*" in one or "[" in one), len(given))
    return f"{' '.join(before.split())}({', '.join([*given[:place], parameter, *given[place:]])})"


def head_around(before: str) -> str | None:
    """Return the head of the function that a place lies in, by the text in front; ``None`` where none is found."""
    heads = [one[1] for one in _FUNCTION.finditer(before) if not _NO_FUNCTION.match(one[1])]
    return " ".join(heads[-1].split()) if heads else None


def lone_loop(before: str, opening: str) -> Advice:
    """Return what is said of a nest of one loop; ``opening`` is the text from ``meta_schedule`` to the loop."""
    head = head_around(before)
    block, mended = ("256", "") if head is None else with_block_size(head, ())
    cut = " ".join(opening.replace("meta_schedule", f"meta_schedule meta_block({block})", 1).split())
    way = f"add `meta_block({block})`, with {block} threads for a block:\n{cut}"
    if mended:
        way = f"add `meta_block({block})`, and make the block size a parameter:\n{mended}\n{cut}"
    return Advice(
        "this `meta_for` does not say how its iterations are divided into blocks",
        "a GPU runs blocks of threads. One `meta_for` alone does not say how many threads a block has.",
        way,
    )
