"""``dataclass`` as the standard library has it, but quick to declare: methods are made when they are first called.

The standard decorator compiles six methods for each class when its module is loaded; for some 350 classes that was a
quarter of the processor time of a small run.  Here fields, slots and ``__match_args__`` are the standard decorator's;
``__init__``, ``__eq__`` and ``__hash__`` are compiled at their first call, and the other methods are the same functions
for all classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache
from reprlib import recursive_repr
from threading import RLock
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    # A type checker knows what the standard decorator does, and no other.
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
            # The one place that declares fields and slots: all other modules have this module's decorator.
            made: Any = dataclasses.dataclass(init=False, repr=False, eq=order, order=order, slots=slots)(cls)  # noqa: TID251
        finally:
            for one in parameters:
                one.frozen = frozen
    made.__dataclass_params__.frozen = frozen
    return made


def _at_first_call(cls: Any, method: str, make: Callable[[Any], FunctionType]) -> Callable[..., Any]:
    """Return a method that has itself made when it is first called, and stands back for what came of it."""

    def first(self: Any, *args: object, **values: object) -> Any:
        made = make(cls)
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.{method}", cls.__module__
        setattr(cls, method, made)
        return made(self, *args, **values)

    return first


def _init(cls: Any) -> FunctionType:
    """Make ``__init__``: a value for each field in order, then ``__post_init__`` where there is one."""
    names: dict[str, Any] = {"_unset": dataclasses.MISSING, "_set": object.__setattr__}
    kinds = ""
    assigned: list[str] = []
    parameters: list[str] = []
    defaults: list[Any] = []
    for field in dataclasses.fields(cls):
        default, factory = field.default, field.default_factory
        if field.init:
            parameters.append(field.name)
            if factory is not dataclasses.MISSING or default is not dataclasses.MISSING:
                defaults.append(default)  # that of a factory is the mark of an argument that was not given
            elif defaults:
                raise TypeError(f"non-default argument {field.name!r} follows default argument")
        elif factory is dataclasses.MISSING and default is dataclasses.MISSING:
            continue  # ``__post_init__`` gives it its value
        if factory is not dataclasses.MISSING:
            names[f"d{len(assigned)}"] = factory
            kinds += "f" if field.init else "F"
        else:
            names[f"d{len(assigned)}"] = default
            kinds += "p" if field.init else "P"
        assigned.append(field.name)
    refuses = cls.__setattr__ is _refuse
    code = _init_of(kinds, refuses, hasattr(cls, "__post_init__"))
    return _with_names(cls, code, assigned, parameters, names, tuple(defaults))


@cache
def _init_of(kinds: str, refuses: bool, post: bool) -> CodeType:
    """Return ``__init__`` of fields f0, f1 and so on; a letter for each says where its value is from."""
    values = {"p": "p{0}", "f": "d{0}() if p{0} is _unset else p{0}", "P": "d{0}", "F": "d{0}()"}
    assign = "_set(self, 'f{0}', {1})" if refuses else "self.f{0} = {1}"
    body = [assign.format(number, values[kind].format(number)) for number, kind in enumerate(kinds)]
    body += ["self.__post_init__()"] if post else []
    parameters = "".join(f", p{number}" for number, kind in enumerate(kinds) if kind.islower())
    return _compiled(f"def __init__(self{parameters}):\n " + "\n ".join(body or ["pass"]))


def _eq(cls: Any) -> FunctionType:
    compared = [field.name for field in dataclasses.fields(cls) if field.compare]
    return _with_names(cls, _eq_of(len(compared)), compared)


@cache
def _eq_of(count: int) -> CodeType:
    left, right = (_values(it, count) for it in ("self", "other"))
    return _compiled(
        f"def __eq__(self, other):\n return {left} == {right} if other.__class__ is self.__class__ else NotImplemented"
    )


def _hash(cls: Any) -> FunctionType:
    hashed = [it.name for it in dataclasses.fields(cls) if (it.compare if it.hash is None else it.hash)]
    return _with_names(cls, _hash_of(len(hashed)), hashed)


@cache
def _hash_of(count: int) -> CodeType:
    return _compiled(f"def __hash__(self):\n return hash({_values('self', count)})")


def _values(of: str, count: int) -> str:
    return f"({''.join(f'{of}.f{number},' for number in range(count))})"


def _compiled(text: str) -> CodeType:
    (code,) = (one for one in compile(text, "<dataclass>", "exec").co_consts if isinstance(one, CodeType))
    return code


def _with_names(
    cls: Any,
    code: CodeType,
    fields: Sequence[str],
    parameters: Sequence[str] = (),
    names: dict[str, Any] | None = None,
    defaults: tuple[Any, ...] = (),
) -> FunctionType:
    """Return the method that a code for fields f0, f1 and so on is for fields of these names.

    Most classes have a method of one of some thirty forms; to name its fields anew takes a tenth of the time of the
    compiler.  ``names`` are those that it looks up itself.
    """
    called = {f"f{number}": name for number, name in enumerate(fields)}
    variables = ("self", *parameters) if parameters else code.co_varnames
    own = code.replace(
        co_filename=f"<{code.co_name} of {cls.__module__}.{cls.__qualname__}>",
        co_varnames=variables,
        co_names=tuple(called.get(name, name) for name in code.co_names),
        co_consts=tuple(called.get(one, one) if isinstance(one, str) else one for one in code.co_consts),
    )
    return FunctionType(own, names or {}, code.co_name, defaults)


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
