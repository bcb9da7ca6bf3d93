"""Dataclasses with late methods against the standard ones, as objects and as classes."""

import copy
import dataclasses
import pickle

import pytest

from metafork.lazy_dataclass import dataclass as lazy

OPTIONS = [
    {"frozen": frozen, "slots": slots, "eq": eq}
    for frozen in (True, False)
    for slots in (True, False)
    for eq in (True, False)
]


def classes(decorator, options):
    @decorator(**options)
    class Point:
        """Three fields of every kind."""

        x: int
        y: list = dataclasses.field(default_factory=list, compare=False)
        z: str = dataclasses.field(default="z", repr=False)
        kept: object = dataclasses.field(default=None, init=False, compare=False)

    @decorator(**options)
    class Empty:
        pass

    @decorator(**options)
    class Counted:
        text: str
        length: int = dataclasses.field(init=False)

        def __post_init__(self):
            object.__setattr__(self, "length", len(self.text))

        def __repr__(self):
            return f"<{self.text}>"

    return Point, Empty, Counted


def outcome(do):
    try:
        return do()
    except (TypeError, AttributeError) as fault:
        return type(fault)


def observed(point, empty, counted, frozen):
    one, same, other = point(1), point(1, [5]), point(2, z="w")
    yield repr(one).split(".")[-1]
    yield repr(empty()).split(".")[-1]
    yield repr(counted("abc"))
    yield [one == same, one == other, one == 1, one != same, empty() == empty(), counted("a") == counted("a")]
    hashed = [outcome(lambda value=value: hash(value)) for value in (one, same, empty())]
    yield hashed[0] is TypeError, hashed[0] == hashed[1]
    yield counted("abc").length, one.kept, point(x=3, y=[1]).y
    yield one.y is not point(1).y
    yield [outcome(lambda arguments=arguments: point(*arguments)) is TypeError for arguments in ((), (1, 2, 3, 4))]
    yield outcome(lambda: point(1, w=2)) is TypeError
    yield outcome(lambda: setattr(one, "x", 7)), outcome(lambda: delattr(other, "z")), one.x
    yield isinstance(outcome(lambda: setattr(one, "unknown", 7)), type)  # which fault, the standard one gets wrong
    yield [field.name for field in dataclasses.fields(point)], dataclasses.asdict(same), dataclasses.astuple(same)
    yield dataclasses.replace(same, x=9).x, dataclasses.is_dataclass(point), point.__match_args__
    copied = copy.deepcopy(same)
    yield copied.x, copied.y, copied.y is not same.y
    yield dataclasses.is_dataclass(dataclasses.dataclass(frozen=frozen)(type("Derived", (point,), {})))
    match one:
        case point(x=x, z=z):
            yield x, z


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_lazy_dataclasses_are_as_the_standard_ones(options):
    mine, theirs = classes(lazy, options), classes(dataclasses.dataclass, options)
    assert list(observed(*mine, options["frozen"])) == list(observed(*theirs, options["frozen"]))
    # ... and again, now that every method has been compiled.
    assert list(observed(*mine, options["frozen"])) == list(observed(*theirs, options["frozen"]))


@lazy(frozen=True, slots=True)
class Kept:
    left: int
    right: tuple = ()


def test_objects_are_pickled_and_the_first_call_may_be_any():
    assert pickle.loads(pickle.dumps(Kept(1, (2,)))) == Kept(1, (2,))
    assert {Kept(1), Kept(1), Kept(2)} == {Kept(2), Kept(1)}
    assert repr(Kept(3)) == "Kept(left=3, right=())"


def test_other_options_are_left_to_the_standard_decorator():
    @lazy(frozen=True, order=True)
    class Ordered:
        number: int

    assert Ordered(1) < Ordered(2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Ordered(1).number = 2
