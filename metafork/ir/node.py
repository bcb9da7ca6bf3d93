"""What the parts of a program have in common: where they stand in the text is no part of what they say."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

from msgspec import Struct


class Node(Struct, frozen=True, eq=False):
    """A frozen record that compares and hashes as what it says: its class and all fields but those ``aside``."""

    aside: ClassVar[frozenset[str]] = frozenset({"span"})
    said: ClassVar[Any]  # an attrgetter

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = (name for name, type_ in cls.__annotations__.items() if not type_.startswith("ClassVar"))
        cls.said = attrgetter("__class__", *(name for name in own if name not in cls.aside))

    def __eq__(self, other: object) -> bool:
        return self.__class__ is other.__class__ and self.said(self) == self.said(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.said(self))
