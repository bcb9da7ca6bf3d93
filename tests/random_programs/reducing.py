"""Make a failing program small: what can go without the failure changing its kind goes.

python -m tests.random_programs.reducing build/fuzz/random_1000.mf [--kind KIND] [--output FILE]

The number in the file's name is the seed, from which the options of the run are drawn again.

The moves know MetaFork's text a little (blocks, statements, clauses, parameters, operands in parentheses), so that most
of what they leave is a program; what is none has no failure and is passed over.  Moves are tried from large to small,
each that keeps the failure is taken at once, until none is left (delta debugging's one-minimality: Zeller and
Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", TSE 2002, section 3).
"""

import argparse
import re
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from metafork import DiagnosticsError
from tests.random_programs.checking import KINDS, check_text

KindOf = Callable[[str], str | None]
"""The kind of a text's failure, ``None`` where it has none or is no program."""


def verified_kind(text: str, seed: int = 0, kind: str = "plain") -> str | None:
    """Return which checks of ``verify`` fail, or where the tool itself broke off."""
    try:
        found = check_text(text, seed, kind=kind)
    except DiagnosticsError:
        return None
    except Exception as error:  # noqa: BLE001 - whatever breaks off is a failure
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {place.name}"
    return " and ".join(sorted({failure.check for failure in found.failures})) or None


def reduced(text: str, kind_of: KindOf, report: Callable[[str], None] = lambda _: None) -> str:
    """Return a text that fails as ``text`` does, and from which no single move can take more.

    Raises ``ValueError`` where ``text`` does not fail.
    """
    kind = kind_of(text)
    if kind is None:
        raise ValueError("this program does not fail")
    tried = {text}
    taken = True
    while taken:
        taken = False
        for smaller in moves(text):
            if smaller in tried:
                continue
            tried.add(smaller)
            if kind_of(smaller) == kind:
                report(f"{len(text)} -> {len(smaller)} characters")
                text, taken = smaller, True
                break
    return text


def moves(text: str) -> Iterator[str]:
    """Yield texts with something less, from large parts to small ones."""
    blocks = sorted(_blocks(text), key=lambda block: block[0] - block[3])
    for header, _, _, end in blocks:
        yield text[:header] + text[end:]
    for header, opened, closed, end in blocks:
        yield text[:header] + text[opened + 1 : closed] + text[end:]
    for match in re.finditer(r"[^;{}]*;[ \t]*\n?", text):
        yield text[: match.start()] + text[match.end() :]
    for match in re.finditer(r" cache\([^)]*\)| const\b|#[^\n]*\n", text):
        yield text[: match.start()] + text[match.end() :]
    for start, end in _arguments(text):
        yield text[:start] + text[end:]
    for start, end in sorted(_parenthesised(text), key=lambda part: part[0] - part[1]):
        for value in ("1", "0", text[start + 1 : end - 1]):
            if len(value) < end - start:
                yield text[:start] + value + text[end:]
    for match in re.finditer(r"(?<=[\w\])]) ?(?:[-+*/%&]|&&|\|\|) ?\w+(?:\[[^\[\]]*\])*", text):
        yield text[: match.start()] + text[match.end() :]


def _blocks(text: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield blocks as (start of the header, of its brace, of the closing brace, end)."""
    open_braces: list[int] = []
    for at, character in enumerate(text):
        if character == "{":
            open_braces.append(at)
        elif character == "}" and open_braces:
            opened = open_braces.pop()
            header = text.rfind("\n", 0, opened) + 1
            yield header, opened, at, text.find("\n", at) + 1 or len(text)


def _arguments(text: str) -> Iterator[tuple[int, int]]:
    """Yield the items of the first parenthesis of each line that starts a function, each with a comma."""
    for head in re.finditer(r"^\w[^\n;{]*\(", text, re.MULTILINE):
        start = head.end()
        end = _closing(text, head.end() - 1)
        commas = [at for at in range(start, end) if text[at] == "," and _depth(text[start:at]) == 0]
        bounds = [start, *(at + 1 for at in commas), end + 1]
        for number in range(len(bounds) - 1):
            last = number == len(bounds) - 2
            yield (bounds[number] - (1 if last and number else 0), bounds[number + 1] - (1 if last else 0))


def _parenthesised(text: str) -> Iterator[tuple[int, int]]:
    for at, character in enumerate(text):
        if character == "(" and not re.search(r"\w\s?$", text[:at]):
            yield at, _closing(text, at) + 1


def _closing(text: str, opened: int) -> int:
    depth = 0
    for at in range(opened, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at
    return len(text) - 1


def _depth(text: str) -> int:
    return sum(text.count(mark) for mark in "([") - sum(text.count(mark) for mark in ")]")


def main() -> None:
    """Print (or write) the small program."""
    parser = argparse.ArgumentParser(description="Make a failing program small.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--kind", choices=sorted(KINDS), default="plain", help="what the program was drawn as")
    parser.add_argument("--output", type=Path, help="where it is written; printed by default")
    options = parser.parse_args()
    seed = int("".join(character for character in options.file.stem if character.isdigit()) or 0)
    kind_of = partial(verified_kind, seed=seed, kind=options.kind)
    text = reduced(options.file.read_text(), kind_of, lambda line: print(line, flush=True))
    if options.output is None:
        print(text)
    else:
        options.output.write_text(text)


if __name__ == "__main__":
    main()
