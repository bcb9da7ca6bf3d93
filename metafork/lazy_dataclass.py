"""``dataclass`` as the standard library has it, but quick to declare: methods are made when they are first called.

The standard decorator compiles six methods for each class when its module is loaded; for some 350 classes that was a
quarter of the processor time of a small run.  Here fields, slots and ``__match_args__`` are the standard decorator's;
``__init__``, ``__eq__`` and ``__hash__`` are compiled at their first call, and the other methods are the same functions
for all classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from reprlib import recursive_repr
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: TID251
else:

    def dataclass(
        cls: type | None = None, /, *, eq: bool = True, order: bool = False, frozen: bool = False, slots: bool = False
    ) -> Any:
        """Like ``dataclasses.dataclass`` with the same arguments (of which it knows these four)."""
        if cls is None:
            return lambda it: dataclass(it, eq=eq, order=order, frozen=frozen, slots=slots)
        cls.__doc__ = cls.__doc__ or cls.__name__  # otherwise a signature is asked for, and ``__init__`` with it
        own = dict(cls.__dict__)
        made = _declared(cls, order=order, frozen=frozen, slots=slots)
        methods: dict[str, Any] = {"__repr__": _repr}
        if "__init__" not in own:
            made.__init__ = _at_first_call(made, "__init__", _init)
        if eq and not order:
            methods["__eq__"] = _at_first_call(made, "__eq__", _eq)
        if frozen:
            methods |= {
                "__setattr__": _refuse,
                "__delattr__": _refuse,
                "__getstate__": _state,
                "__setstate__": _restore,
            }
        for name, method in methods.items():
            if name not in own:
                setattr(made, name, method)
        if eq and own.get("__hash__") is None:  # a class that defines `__eq__` alone has `None`
            made.__hash__ = _at_first_call(made, "__hash__", _hash) if frozen else None
        return made


_DECLARING = RLock()
"""Held while bases do not say that they are frozen."""


def _declared(cls: type, *, order: bool, frozen: bool, slots: bool) -> Any:
    """Return the class with fields, slots and order, frozen by name only: ``_refuse`` is one function for all classes.

    The standard library's classes and these inherit from each other as they do among themselves: all frozen, or none.
    """
    parameters = [one for base in cls.__mro__[1:] if (one := base.__dict__.get("__dataclass_params__")) is not None]
    with _DECLARING:
        if any(one.frozen != frozen for one in parameters):
            raise TypeError(
                f"{cls.__qualname__}: a frozen dataclass extends frozen ones only, another one none of them"
            )
        for one in parameters:
            one.frozen = False
        try:
            made: Any = dataclasses.dataclass(init=False, repr=False, eq=order, order=order, slots=slots)(cls)  # noqa: TID251
        finally:
            for one in parameters:
                one.frozen = frozen
    made.__dataclass_params__.frozen = frozen
    return made


def _at_first_call(cls: Any, method: str, text: Callable[[Any, dict[str, Any]], str]) -> Callable[..., Any]:
    """Return a method that compiles its ``text`` when it is first called, and stands back for what came of it."""

    def first(self: Any, *args: object, **values: object) -> Any:
        names: dict[str, Any] = {}
        exec(compile(text(cls, names), f"<{method} of {cls.__module__}.{cls.__qualname__}>", "exec"), names)
        made = names[method]
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.{method}", cls.__module__
        setattr(cls, method, made)
        return made(self, *args, **values)

    return first


def _init(cls: Any, names: dict[str, Any]) -> str:
    """Write ``__init__``: a value for each field in order, then ``__post_init__`` where there is one."""
    names |= {"_unset": dataclasses.MISSING, "_set": object.__setattr__}
    assign = "_set(self, {0!r}, {1})" if cls.__setattr__ is _refuse else "self.{0} = {1}"
    parameters, body = ["self"], []
    for field in dataclasses.fields(cls):
        name, default = field.name, f"_default_{field.name}"
        parameter = value = name
        if field.default_factory is not dataclasses.MISSING:
            names[default] = field.default_factory
            parameter = f"{name}=_unset"
            value = f"{default}() if {name} is _unset else {name}" if field.init else f"{default}()"
        elif field.default is not dataclasses.MISSING:
            names[default] = field.default
            parameter = f"{name}={default}"
            value = name if field.init else default
        if field.init:
            parameters.append(parameter)
        if field.init or value != name:  # ``__post_init__`` gives the others their values
            body.append(assign.format(name, value))
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    return f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])


def _eq(cls: Any, _: dict[str, Any]) -> str:
    compared = [field.name for field in dataclasses.fields(cls) if field.compare]
    left, right = (_values(it, compared) for it in ("self", "other"))
    return (
        f"def __eq__(self, other):\n return {left} == {right} if other.__class__ is self.__class__ else NotImplemented"
    )


def _hash(cls: Any, _: dict[str, Any]) -> str:
    hashed = [it.name for it in dataclasses.fields(cls) if (it.compare if it.hash is None else it.hash)]
    return f"def __hash__(self):\n return hash({_values('self', hashed)})"


def _values(of: str, names: list[str]) -> str:
    return f"({''.join(f'{of}.{name},' for name in names)})"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *_: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
