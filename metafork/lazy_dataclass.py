"""``dataclass`` as the standard library has it, but quick to declare: methods are made when they are first called.

The standard decorator compiles six methods for each class when its module is loaded, and describes each field; for some
350 classes that was a quarter of the processor time of a small run.  Here ``__init__``, ``__eq__`` and ``__hash__`` are
compiled at their first call, the other methods are the same functions for all classes, and the standard library
describes fields (``dataclasses.fields``) when it is first asked to.  Neither ``InitVar`` nor fields
by keyword alone are known here.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from reprlib import recursive_repr
from types import CodeType, FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, get_origin

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: TID251 - a type checker knows this one, and no other
else:

    def dataclass(
        cls: type | None = None, /, *, eq: bool = True, order: bool = False, frozen: bool = False, slots: bool = False
    ) -> Any:
        """Like ``dataclasses.dataclass`` with the same arguments (of which it knows these four)."""
        if cls is None:
            return lambda it: dataclass(it, eq=eq, order=order, frozen=frozen, slots=slots)
        own = dict(cls.__dict__)
        made = _declared(cls, order=order, frozen=frozen, slots=slots)
        methods: dict[str, Any] = {"__repr__": _repr}
        if "__init__" not in own:
            made.__init__ = _at_first_call(made, "__init__", _init)
        if eq:
            methods["__eq__"] = _at_first_call(made, "__eq__", _eq)
        if order:
            methods |= {name: _at_first_call(made, name, partial(_order, name)) for name in _ORDERS}
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


class _Field(NamedTuple):
    """What methods need to know of a field; ``default`` or ``factory`` is ``MISSING``, or both are."""

    default: Any = dataclasses.MISSING
    factory: Any = dataclasses.MISSING
    init: bool = True
    compared: bool = True
    hashed: bool = True


_PLAIN = _Field()
_OWN, _MATCHED = "__metafork_fields__", "__match_args__"


def _declared(cls: type, *, order: bool, frozen: bool, slots: bool) -> Any:
    """Return the class with its fields and slots.

    The standard library's classes and these inherit from each other as they do among themselves: all frozen, or none.
    """
    fields: dict[str, _Field] = {}
    for base in cls.__mro__[-1:0:-1]:
        parameters = base.__dict__.get("__dataclass_params__")
        if parameters is None:
            continue
        if parameters.frozen != frozen:
            raise TypeError(
                f"{cls.__qualname__}: a frozen dataclass extends frozen ones only, another one none of them"
            )
        known = base.__dict__.get(_OWN)
        fields |= {one.name: _described(one) for one in dataclasses.fields(base)} if known is None else known
    annotations = inspect.get_annotations(cls)
    described: dict[str, Any] = {"__annotations__": annotations, "__module__": cls.__module__, "__doc__": cls.__name__}
    for name, type_ in annotations.items():
        if _is_of_class(type_):
            continue
        value = cls.__dict__.get(name, dataclasses.MISSING)
        if value is dataclasses.MISSING:
            fields[name] = _PLAIN
            continue
        described[name] = value
        if not isinstance(value, dataclasses.Field):
            if value.__class__.__hash__ is None:
                raise ValueError(f"mutable default {type(value)} for field {name} is not allowed: use default_factory")
            fields[name] = _Field(value)
            continue
        fields[name] = _described(value)
        if value.default is dataclasses.MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, value.default)
    made: Any = _with_slots(cls, fields) if slots else cls
    setattr(made, _OWN, fields)
    made.__dataclass_fields__ = _Described(made, described)
    made.__dataclass_params__ = SimpleNamespace(frozen=frozen, order=order)
    if _MATCHED not in cls.__dict__:
        setattr(made, _MATCHED, tuple(name for name, one in fields.items() if one.init))
    return made


def _described(field: dataclasses.Field[Any]) -> _Field:
    hashed = field.compare if field.hash is None else field.hash
    return _Field(field.default, field.default_factory, field.init, field.compare, hashed)


def _is_of_class(type_: object) -> bool:
    if isinstance(type_, str):
        return type_.startswith(("ClassVar", "typing.ClassVar"))
    return type_ is ClassVar or get_origin(type_) is ClassVar


class _Described:
    """``__dataclass_fields__`` of a class: those of its bases, and what the standard library says of its own."""

    def __init__(self, owner: Any, described: dict[str, Any]) -> None:
        self._owner, self._described = owner, described

    def __get__(self, instance: object, owner: type) -> dict[str, dataclasses.Field[Any]]:
        fields: dict[str, dataclasses.Field[Any]] = {}
        for base in self._owner.__mro__[-1:0:-1]:
            fields |= getattr(base, "__dataclass_fields__", {})
        describing = dataclasses.dataclass(init=False, repr=False, eq=False)  # noqa: TID251 - here alone: it describes
        own: Any = describing(type("Described", (), self._described))
        fields |= own.__dataclass_fields__
        self._owner.__dataclass_fields__ = fields
        return fields


def _with_slots(cls: type, fields: Mapping[str, _Field]) -> type:
    """Return the class anew, with a slot for each field that no base has one for."""
    own = dict(cls.__dict__)
    if "__slots__" in own:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    inherited: set[str] = set()
    for base in cls.__mro__[1:-1]:
        slots = base.__dict__.get("__slots__", ())
        inherited |= {slots} if isinstance(slots, str) else set(slots)
    own["__slots__"] = tuple(name for name in fields if name not in inherited)
    for name in (*fields, "__dict__", "__weakref__"):
        own.pop(name, None)
    made = type(cls)(cls.__name__, cls.__bases__, own)
    made.__qualname__ = cls.__qualname__
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
    for name, (default, factory, init, *_) in _fields(cls):
        if init:
            parameters.append(name)
            if factory is not dataclasses.MISSING or default is not dataclasses.MISSING:
                defaults.append(default)  # that of a factory is the mark of an argument that was not given
            elif defaults:
                raise TypeError(f"non-default argument {name!r} follows default argument")
        elif factory is dataclasses.MISSING and default is dataclasses.MISSING:
            continue  # ``__post_init__`` gives it its value
        if factory is not dataclasses.MISSING:
            names[f"d{len(assigned)}"] = factory
            kinds += "f" if init else "F"
        else:
            names[f"d{len(assigned)}"] = default
            kinds += "p" if init else "P"
        assigned.append(name)
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


def _fields(cls: Any) -> Iterable[tuple[str, _Field]]:
    fields: dict[str, _Field] = cls.__dict__[_OWN]
    return fields.items()


def _eq(cls: Any) -> FunctionType:
    compared = [name for name, field in _fields(cls) if field.compared]
    return _with_names(cls, _eq_of(len(compared)), compared)


@cache
def _eq_of(count: int) -> CodeType:
    left, right = (_values(it, count) for it in ("self", "other"))
    return _compiled(
        f"def __eq__(self, other):\n return {left} == {right} if other.__class__ is self.__class__ else NotImplemented"
    )


_ORDERS = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def _order(method: str, cls: Any) -> FunctionType:
    compared = [name for name, field in _fields(cls) if field.compared]
    return _with_names(cls, _order_of(method, len(compared)), compared)


@cache
def _order_of(method: str, count: int) -> CodeType:
    left, right = (_values(it, count) for it in ("self", "other"))
    test = f"{left} {_ORDERS[method]} {right}"
    return _compiled(
        f"def {method}(self, other):\n return {test} if other.__class__ is self.__class__ else NotImplemented"
    )


def _hash(cls: Any) -> FunctionType:
    hashed = [name for name, field in _fields(cls) if field.hashed]
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
