"""Values of a JSON document, each checked when it is read, with its place in what is said about a fault.

JSON that a user hands in may hold anything: other types than expected, numbers of any size, NaN, a key twice, texts
that no file can hold.  ``parsed`` and ``Value`` turn all of it into one exception.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NoReturn

from msgspec import Struct

from metafork.comprehensive.systems.points import Number

MOST_CHARACTERS = 2**25
"""The size of a document that is still read."""

LARGEST = 2**63 - 1
"""The largest number that a machine, a parameter or a witness can have: the dispatcher's."""

_NAME = re.compile(r"[A-Za-z_]\w{0,254}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,19}(?:/[0-9]{1,19})?", re.ASCII)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class TreeFormatError(ValueError):
    """A file is no ``metafork-tree`` of a version that is read here; the message says what is wrong, and where."""


def parsed(text: str) -> Value:
    """Return the value that a JSON text holds.  Raises ``TreeFormatError``."""
    if len(text) > MOST_CHARACTERS:
        raise TreeFormatError(f"it is longer than {MOST_CHARACTERS} characters")
    try:
        return Value(json.loads(text, parse_constant=_no_constant, object_pairs_hook=_distinct))
    except RecursionError:
        raise TreeFormatError("it nests too deeply") from None
    except TreeFormatError:
        raise
    except ValueError as error:  # no JSON, or a number with more digits than Python converts
        raise TreeFormatError(f"it is no JSON: {error}") from error


def _no_constant(name: str) -> NoReturn:
    raise TreeFormatError(f"{name} is no number of JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise TreeFormatError(f"the key {twice[:40]!r} occurs twice in one object")
    return found


class Value(Struct, frozen=True):
    """A JSON value and where it stands; every method raises ``TreeFormatError`` where it is not what it should be."""

    raw: Any
    place: str = ""

    def fault(self, message: str) -> TreeFormatError:
        """Return the exception that says what is wrong here."""
        return TreeFormatError(f"{self.place.lstrip('.')}: {message}" if self.place else message)

    def has(self, key: str) -> bool:
        """Say whether this is an object with that key."""
        return isinstance(self.raw, dict) and key in self.raw

    def __getitem__(self, key: str) -> Value:
        if not isinstance(self.raw, dict):
            raise self.fault(f"an object is expected, not {_shown(self.raw)}")
        if key not in self.raw:
            raise self.fault(f"there is no {key!r}")
        return Value(self.raw[key], f"{self.place}.{key}")

    def get(self, key: str) -> Value | None:
        """Return the value of a key that may be missing (or null)."""
        return self[key] if self.has(key) and self.raw[key] is not None else None

    def items(self) -> Iterator[tuple[str, Value]]:
        """Yield the keys and values of an object; keys are names."""
        if not isinstance(self.raw, dict):
            raise self.fault(f"an object is expected, not {_shown(self.raw)}")
        for key, value in self.raw.items():
            yield Value(key, f"{self.place} key").text(), Value(value, f"{self.place}.{key[:40]}")

    def elements(self) -> list[Value]:
        """Return the elements of an array."""
        if not isinstance(self.raw, list):
            raise self.fault(f"an array is expected, not {_shown(self.raw)}")
        return [Value(value, f"{self.place}[{number}]") for number, value in enumerate(self.raw)]

    def text(self) -> str:
        """Return a text of one line that can be printed."""
        if not isinstance(self.raw, str):
            raise self.fault(f"a text is expected, not {_shown(self.raw)}")
        if _UNPRINTABLE.search(self.raw):
            raise self.fault("a text has a character that cannot be printed")
        return self.raw

    def texts(self) -> tuple[str, ...]:
        """Return an array of texts."""
        return tuple(element.text() for element in self.elements())

    def name(self) -> str:
        """Return a name of C."""
        text = self.text()
        if _NAME.fullmatch(text) is None:
            raise self.fault(f"{text[:40]!r} is no name")
        return text

    def one_of(self, *words: str) -> str:
        """Return one of these words."""
        text = self.text()
        if text not in words:
            raise self.fault(f"{text[:40]!r} is none of {', '.join(words)}")
        return text

    def truth(self) -> bool:
        """Return true or false."""
        if not isinstance(self.raw, bool):
            raise self.fault(f"true or false is expected, not {_shown(self.raw)}")
        return self.raw

    def integer(self, least: int, most: int = LARGEST) -> int:
        """Return an integer within bounds."""
        if not isinstance(self.raw, int) or isinstance(self.raw, bool):
            raise self.fault(f"an integer is expected, not {_shown(self.raw)}")
        if not least <= self.raw <= most:
            raise self.fault(f"{_shown(self.raw)} is not within {least} and {most}")
        return self.raw

    def number(self) -> Number:
        """Return an integer, or a fraction that is written ``"3/4"``."""
        if isinstance(self.raw, int):
            return self.integer(-LARGEST)
        text = self.text()
        if _NUMBER.fullmatch(text) is None:
            raise self.fault(f"{text[:40]!r} is neither an integer nor a fraction")
        try:
            number = Fraction(text)
        except ZeroDivisionError:
            raise self.fault(f"{text!r} divides by zero") from None
        return int(number) if number.denominator == 1 else number


def _shown(raw: object) -> str:
    match raw:
        case None:
            return "null"
        case dict():
            return "an object"
        case list():
            return "an array"
        case int() if not isinstance(raw, bool) and abs(raw) > LARGEST:
            return "a number beyond 64 bits"
        case _:
            return ascii(raw)[:40]
