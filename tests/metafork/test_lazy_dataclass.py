"""Classes declared by ``metafork.lazy_dataclass`` behave as the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from typing import Any

import pytest

from metafork import lazy_dataclass

DECORATORS = {"standard": dataclasses.dataclass, "lazy": lazy_dataclass.dataclass}


@lazy_dataclass.dataclass(frozen=True, slots=True)
class Point:
    """Two coordinates, and where they were read."""

    x: float
    y: float = 0.0
    place: str = dataclasses.field(default="", compare=False, repr=False)


@pytest.fixture(params=DECORATORS)
def declare(request: pytest.FixtureRequest) -> Any:
    return DECORATORS[request.param]


def test_values_defaults_factories_and_what_comes_after(declare: Any) -> None:
    @declare(slots=True)
    class Sums:
        values: list[int]
        start: int = 0
        seen: dict[str, int] = dataclasses.field(default_factory=dict)
        total: int = dataclasses.field(init=False)
        steps: list[int] = dataclasses.field(init=False, default_factory=list)
        unit: str = dataclasses.field(init=False, default="m")

        def __post_init__(self) -> None:
            self.total = self.start + sum(self.values)

    first, second = Sums([1, 2], 3), Sums(values=[1, 2], start=3, seen={"a": 1})
    assert (first.total, first.unit, first.steps) == (6, "m", [])
    assert first != second
    assert Sums([1, 2], 3) == first
    first.steps.append(1)
    assert second.steps == []
    first.start = 9
    assert first.start == 9
    assert repr(second).endswith("Sums(values=[1, 2], start=3, seen={'a': 1}, total=6, steps=[], unit='m')")
    assert Sums.__match_args__ == ("values", "start", "seen")
    assert not hasattr(first, "__dict__")
    with pytest.raises(TypeError, match="unhashable"):
        hash(first)
    for wrong in (lambda: Sums(), lambda: Sums([1], 2, {}, 4), lambda: Sums([1], total=4)):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            wrong()


def test_frozen_ones_are_values(declare: Any) -> None:
    @declare(frozen=True, slots=True)
    class Access:
        array: str
        index: tuple[int, ...] = ()
        notes: list[str] = dataclasses.field(default_factory=list, hash=False)
        span: int = dataclasses.field(default=0, compare=False)

    it, same = Access("a", (1,), span=3), Access("a", (1,), [], 4)
    assert it == same
    assert hash(it) == hash(same) == hash(("a", (1,)))
    assert it != Access("b", (1,))
    assert it != ("a", (1,), [])
    assert dataclasses.replace(it, array="c") == Access("c", (1,))
    assert copy.copy(it) == copy.deepcopy(it) == it
    with pytest.raises(dataclasses.FrozenInstanceError):
        it.array = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del it.array
    match it:
        case Access(array, (only,)):
            assert (array, only) == ("a", 1)


def test_own_methods_stay(declare: Any) -> None:
    @declare(frozen=True)
    class Named:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and self.name.lower() == other.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return self.name

    assert Named("A") == Named("a")
    assert hash(Named("A")) == hash("a")
    assert repr(Named("A")) == "A"


def test_without_equality_identity_counts(declare: Any) -> None:
    @declare(eq=False, slots=True)
    class Node:
        name: str = "n"

    first, second = Node(), Node()
    assert first != second
    assert len({first, second, first}) == 2


def test_a_class_extends_another(declare: Any) -> None:
    @declare(frozen=True, slots=True)
    class Base:
        a: int
        b: int = 2

    @declare(frozen=True, slots=True)
    class Derived(Base):
        c: int = 3

    made = Derived(1)
    assert (made.a, made.b, made.c) == (1, 2, 3)
    assert Base(1) == Base(1)
    assert Base(1) != Derived(1)
    assert repr(made).endswith("Derived(a=1, b=2, c=3)")


@pytest.mark.parametrize("inner", DECORATORS.values(), ids=DECORATORS)
def test_one_kind_extends_the_other(declare: Any, inner: Any) -> None:
    @inner(frozen=True, slots=True)
    class Base:
        a: int
        b: int = 2

    @declare(frozen=True, slots=True)
    class Derived(Base):
        c: int = 3

    made = Derived(1)
    assert (made, hash(made)) == (Derived(1, 2, 3), hash(Derived(1)))
    assert Base(1) != made
    for name in ("b", "c"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, 4)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("inner", DECORATORS.values(), ids=DECORATORS)
def test_a_frozen_class_extends_frozen_ones_only(declare: Any, inner: Any, frozen: bool) -> None:
    @inner(frozen=frozen)
    class Base:
        a: int

    class Derived(Base):
        b: int = 1

    with pytest.raises(TypeError, match="frozen"):
        declare(frozen=not frozen)(Derived)
    assert Base(1) == Base(1)


def test_an_order(declare: Any) -> None:
    @declare(frozen=True, slots=True, order=True)
    class Version:
        major: int
        minor: int = 0

    assert sorted([Version(2), Version(1, 5), Version(1)]) == [Version(1), Version(1, 5), Version(2)]
    assert hash(Version(1)) == hash(Version(1, 0))


def test_nan_is_equal_to_itself_as_in_tuples() -> None:
    nan = float("nan")
    assert Point(nan) == Point(nan)


def test_values_go_through_pickle() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 2, "here"))).place == "here"


def test_a_value_that_holds_itself_has_a_text(declare: Any) -> None:
    @declare()
    class Ring:
        next: Any = None

    ring = Ring()
    ring.next = ring
    assert "..." in repr(ring)


def test_first_calls_from_several_threads() -> None:
    for _ in range(20):

        @lazy_dataclass.dataclass(frozen=True, slots=True)
        class Value:
            a: int
            b: int = 1

        barrier, made = threading.Barrier(8), []

        def make(barrier: threading.Barrier = barrier, made: list[Any] = made, declared: Any = Value) -> None:
            barrier.wait()
            made.append(hash(declared(1)) == hash(declared(1)) and declared(1) == declared(1))

        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [True] * 8
