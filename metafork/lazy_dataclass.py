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
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, get_origin

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
        members = _declared(cls, own, order=order, frozen=frozen)
        first: list[Any] = []
        methods: dict[str, Any] = {"__repr__": _repr, "__init__": _at_first_call(first, "__init__", _init)}
        if eq:
            methods["__eq__"] = _at_first_call(first, "__eq__", _eq)
            if own.get("__hash__") is None:  # a class that defines `__eq__` alone has `None`
                members["__hash__"] = _at_first_call(first, "__hash__", _hash) if frozen else None
        if order:
            methods |= {name: _at_first_call(first, name, partial(_order, name)) for name in _ORDERS}
        if frozen:
            methods |= _FROZEN
        members = {**methods, **own, **members}
        made = _with_slots(cls, members) if slots else _with_members(cls, own, members)
        made.__dict__[_DESCRIBED].owner = made
        first.append(made)
        return made


class _Field:
    """What methods need to know of a field; ``default`` or ``factory`` is ``MISSING``, or both are."""

    __slots__ = ("compared", "default", "factory", "hashed", "init")

    def __init__(
        self,
        default: Any = dataclasses.MISSING,
        factory: Any = dataclasses.MISSING,
        init: bool = True,
        compared: bool = True,
        hashed: bool = True,
    ) -> None:
        self.default, self.factory, self.init, self.compared, self.hashed = default, factory, init, compared, hashed


_PLAIN = _Field()
_OWN, _MATCHED = "__metafork_fields__", "__match_args__"
_DESCRIBED, _PARAMETERS = "__dataclass_fields__", "__dataclass_params__"
_OF_CLASS = ("ClassVar", "typing.ClassVar")


def _declared(cls: type, own: dict[str, Any], *, order: bool, frozen: bool) -> dict[str, Any]:
    """Return the members that say which fields a class with the members ``own`` has.

    The standard library's classes and these inherit from each other as they do among themselves: all frozen, or none.
    """
    fields: dict[str, _Field] = {}
    for base in cls.__mro__[-2:0:-1]:
        parameters = base.__dict__.get(_PARAMETERS)
        if parameters is None:
            continue
        if parameters.frozen != frozen:
            raise TypeError(
                f"{cls.__qualname__}: a frozen dataclass extends frozen ones only, another one none of them"
            )
        known = base.__dict__.get(_OWN)
        fields |= {one.name: _described(one) for one in dataclasses.fields(base)} if known is None else known
    values: dict[str, Any] = {}
    for name, type_ in own.get("__annotations__", {}).items():
        if type_.startswith(_OF_CLASS) if type_.__class__ is str else _is_of_class(type_):
            continue
        if name not in own:
            fields[name] = _PLAIN
            continue
        value = values[name] = own[name]
        if not isinstance(value, dataclasses.Field):
            if value.__class__.__hash__ is None:
                raise ValueError(f"mutable default {type(value)} for field {name} is not allowed: use default_factory")
            fields[name] = _Field(value)
            continue
        fields[name] = _described(value)
        if value.default is dataclasses.MISSING:
            del own[name]
        else:
            own[name] = value.default
    members = {_OWN: fields, _DESCRIBED: _Described(values), _PARAMETERS: _parameters(frozen, order)}
    if _MATCHED not in own:
        members[_MATCHED] = tuple([name for name, one in fields.items() if one.init])
    return members


@cache
def _parameters(frozen: bool, order: bool) -> SimpleNamespace:
    return SimpleNamespace(frozen=frozen, order=order)


def _described(field: dataclasses.Field[Any]) -> _Field:
    hashed = field.compare if field.hash is None else field.hash
    return _Field(field.default, field.default_factory, field.init, field.compare, hashed)


def _is_of_class(type_: object) -> bool:
    return type_ is ClassVar or get_origin(type_) is ClassVar


class _Described:
    """``__dataclass_fields__`` of a class: those of its bases, and what the standard library says of its own."""

    owner: Any

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __get__(self, instance: object, owner: type) -> dict[str, dataclasses.Field[Any]]:
        fields: dict[str, dataclasses.Field[Any]] = {}
        cls = self.owner
        for base in cls.__mro__[-1:0:-1]:
            fields |= getattr(base, _DESCRIBED, {})
        types = {name: type_ for name, type_ in inspect.get_annotations(cls).items() if name in cls.__dict__[_OWN]}
        # The standard library looks for its own words in the text of a type, which takes most of its time.
        described = {"__annotations__": dict.fromkeys(types, object), "__module__": __name__, "__doc__": cls.__name__}
        describing = dataclasses.dataclass(init=False, repr=False, eq=False)  # noqa: TID251 - here alone: it describes
        own: Any = describing(type("Described", (), described | self._values))
        for name, type_ in types.items():
            own.__dataclass_fields__[name].type = type_
        fields |= own.__dataclass_fields__
        cls.__dataclass_fields__ = fields
        return fields


def _with_members(cls: type, own: Mapping[str, Any], members: Mapping[str, Any]) -> type:
    """Return the class itself with its new members; ``own`` are those that it keeps."""
    for name in cls.__dict__.keys() - own.keys():
        delattr(cls, name)
    for name, member in members.items():
        if cls.__dict__.get(name, dataclasses.MISSING) is not member:
            setattr(cls, name, member)
    return cls


def _with_slots(cls: type, members: dict[str, Any]) -> type:
    """Return the class anew, with these members and a slot for each field that no base has one for."""
    if "__slots__" in members:
        raise TypeError(f"{cls.__name__} already specifies __slots__")
    inherited: set[str] = set()
    for base in cls.__mro__[1:-1]:
        slots = base.__dict__.get("__slots__", ())
        inherited |= {slots} if isinstance(slots, str) else set(slots)
    fields = members[_OWN]
    members["__slots__"] = tuple([name for name in fields if name not in inherited])
    for name in (*fields, "__dict__", "__weakref__"):
        members.pop(name, None)
    members["__qualname__"] = cls.__qualname__
    return type(cls)(cls.__name__, cls.__bases__, members)


def _at_first_call(first: Sequence[Any], method: str, make: Callable[[Any], FunctionType]) -> Callable[..., Any]:
    """Return a method that has itself made when it is first called, and stands back for what came of it.

    ``first`` has the class then, which is made after its methods.
    """

    def call(self: Any, *args: object, **values: object) -> Any:
        (cls,) = first
        made = make(cls)
        made.__qualname__, made.__module__ = f"{cls.__qualname__}.{method}", cls.__module__
        setattr(cls, method, made)
        return made(self, *args, **values)

    return call


def _init(cls: Any) -> FunctionType:
    """Make ``__init__``: a value for each field in order, then ``__post_init__`` where there is one."""
    names: dict[str, Any] = {"_unset": dataclasses.MISSING, "_set": object.__setattr__}
    kinds = ""
    assigned: list[str] = []
    parameters: list[str] = []
    defaults: list[Any] = []
    for name, field in _fields(cls):
        default, factory, init = field.default, field.factory, field.init
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


_FROZEN = {"__setattr__": _refuse, "__delattr__": _refuse, "__getstate__": _state, "__setstate__": _restore}
