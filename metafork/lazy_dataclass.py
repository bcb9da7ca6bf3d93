"""``dataclass``: the standard decorator, whose methods are compiled when they are first called.

The standard one writes the text of up to six methods for each class and compiles it when the module is imported.  A run
of ``metafork optimize`` imports some 280 such classes, makes objects of about half of them and compares those of fewer:
that took a sixth of its processor time.  Here a method is written and compiled at its first call, and then is what the
standard decorator would have made; ``fields``, ``replace``, ``asdict`` and ``match`` work as ever.

``frozen``, ``slots`` and ``eq`` are understood; other options leave the class to the standard decorator.  Type checkers
see the standard decorator, and so do modules that import that one: both kinds mix.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

_FACTORY = object()
"""In place of an argument that was not given and that a factory makes."""


def _made(cls: type, frozen: bool, slots: bool, eq: bool) -> type:
    """Return the dataclass of a class."""
    own = cls.__dict__
    if own.get("__doc__") is None:
        cls.__doc__ = cls.__name__  # the standard decorator would work out a signature
    hashed = own.get("__hash__", dataclasses.MISSING)
    # ``__eq__`` in the body of a class sets ``__hash__`` to None there.
    keeps_hash = hashed is not dataclasses.MISSING and not (hashed is None and "__eq__" in own)
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    made.__dataclass_params__.frozen = frozen  # so that standard dataclasses may be derived from it
    kept = made.__dict__
    _later(made, "__init__", _init_text)
    if "__repr__" not in kept:
        _later(made, "__repr__", _repr_text)
    if eq:
        if "__eq__" not in kept:
            _later(made, "__eq__", _eq_text)
        if not keeps_hash:
            if frozen:
                _later(made, "__hash__", _hash_text)
            else:
                made.__hash__ = None
    if frozen:
        made.__setattr__, made.__delattr__ = _refuse_to_set, _refuse_to_delete
        if slots:
            made.__getstate__, made.__setstate__ = _state, _set_state
    return made  # type: ignore[no-any-return]


def _later(made: Any, name: str, text: Callable[[Any, dict[str, object]], str]) -> None:
    """Give a class a method that is compiled when it is first called."""

    def first(self: Any, *arguments: Any, **named: Any) -> Any:
        names: dict[str, Any] = {}
        exec(compile(text(made, names), f"<{name} of {made.__qualname__}>", "exec"), names)
        method = names[name]
        method.__qualname__ = f"{made.__qualname__}.{name}"
        type.__setattr__(made, name, method)
        return method(self, *arguments, **named)

    first.__name__, first.__qualname__ = name, f"{made.__qualname__}.{name}"
    setattr(made, name, first)


def _init_text(made: Any, names: dict[str, object]) -> str:
    names["factory"], names["put"] = _FACTORY, object.__setattr__
    frozen = made.__dataclass_params__.frozen
    arguments: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(made):
        value = field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"make_{field.name}"] = field.default_factory
            value = f"make_{field.name}()"
            if field.init:
                arguments.append(f"{field.name}=factory")
                value = f"{value} if {field.name} is factory else {field.name}"
        elif field.default is not dataclasses.MISSING:
            names[f"default_{field.name}"] = field.default
            value = f"default_{field.name}"
            if field.init:
                arguments.append(f"{field.name}={value}")
                value = field.name
        elif field.init:
            arguments.append(field.name)
        else:
            continue  # ``__post_init__`` sets it
        body.append(f" put(self, {field.name!r}, {value})" if frozen else f" self.{field.name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append(" self.__post_init__()")
    return f"def __init__(self, {', '.join(arguments)}):\n" + "\n".join(body or [" pass"])


def _tuple_text(of: str, names: list[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _eq_text(made: Any, names: dict[str, object]) -> str:
    compared = [field.name for field in dataclasses.fields(made) if field.compare]
    sides = f"{_tuple_text('self', compared)} == {_tuple_text('other', compared)}"
    return f"def __eq__(self, other):\n return {sides} if other.__class__ is self.__class__ else NotImplemented"


def _hash_text(made: Any, names: dict[str, object]) -> str:
    hashed = [one.name for one in dataclasses.fields(made) if (one.compare if one.hash is None else one.hash)]
    return f"def __hash__(self):\n return hash({_tuple_text('self', hashed)})"


def _repr_text(made: Any, names: dict[str, object]) -> str:
    names["recursive"] = _recursive
    shown = ", ".join(f"{field.name}={{self.{field.name}!r}}" for field in dataclasses.fields(made) if field.repr)
    return f"@recursive\ndef __repr__(self):\n return f'{{self.__class__.__qualname__}}({shown})'"


def _recursive(method: Callable[[Any], str]) -> Callable[[Any], str]:
    from reprlib import recursive_repr

    return recursive_repr()(method)


def _refuse_to_set(self: object, name: str, value: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, eq=True, **others):  # noqa: ANN001, ANN003, ANN201
        """Make a class a dataclass; see the standard ``dataclasses.dataclass``."""

        def wrap(cls: type) -> type:
            if others:
                return dataclasses.dataclass(frozen=frozen, slots=slots, eq=eq, **others)(cls)
            return _made(cls, frozen, slots, eq)

        return wrap if cls is None else wrap(cls)
