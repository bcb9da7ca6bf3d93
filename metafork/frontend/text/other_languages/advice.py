"""What is said of something that another language has: a sentence, why it is not here, and what to write."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct


class Advice(Struct, frozen=True):
    """A message with its reason and help, which may have lines of source; of one ``cause`` the first is reported.

    It is not ``certain`` if a header that is not found may say otherwise.
    """

    message: str
    reason: str
    help: str
    cause: str = ""
    certain: bool = True


def spelled(texts: Iterable[str]) -> str:
    """Return tokens as people write C."""
    closed = re.sub(r" (?=[\[\](),.;:<>])|(?<=[\[(.*&:<]) ", "", " ".join(texts))
    return re.sub(r"(?<=[,>])(?=[\w*&])", " ", closed)
