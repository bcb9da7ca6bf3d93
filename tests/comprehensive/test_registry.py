import pytest

from metafork.comprehensive import registry
from metafork.comprehensive.spelled_options import OptionError


def names(found):
    return [one.name for one in found]


def test_defaults_are_those_of_the_tables_in_order():
    assert names(registry.counters()) == list(registry.COUNTERS)
    assert names(registry.strategies()) == list(registry.STRATEGIES)


def test_a_plus_adds_to_the_defaults():
    assert names(registry.strategies(["+thread_striding"])) == [*registry.STRATEGIES, "thread_striding"]
    assert names(registry.strategies(["+caching"])) == list(registry.STRATEGIES)
    assert names(registry.strategies(["thread_striding", "caching"])) == ["thread_striding", "caching"]


def test_a_group_is_the_strategies_of_its_name():
    levels = [f"register_pressure{level}" for level in (1, 2, 3)]
    assert names(registry.strategies(["register_pressure", "cse1"])) == [*levels, "cse1"]
    assert names(registry.strategies(["+register_pressure"])) == [*registry.STRATEGIES, *levels]
    assert names(registry.strategies(order="paper")) == [*registry.STRATEGIES, *levels]


def test_every_optional_name_is_what_it_says():
    assert names(registry.counters(list(registry.OPTIONAL_COUNTERS))) == list(registry.OPTIONAL_COUNTERS)
    assert names(registry.strategies(list(registry.OPTIONAL_STRATEGIES))) == list(registry.OPTIONAL_STRATEGIES)


def test_every_strategy_improves_a_counter_that_exists():
    known = {**registry.COUNTERS, **registry.OPTIONAL_COUNTERS}
    for strategy in (*registry.strategies(), *registry.strategies(list(registry.OPTIONAL_STRATEGIES))):
        assert strategy.improves or strategy.proposes or strategy.by_choice
        assert strategy.improves <= set(known)


@pytest.mark.parametrize(("name", "meant"), [("cachin", "caching"), ("+thread_stridin", "thread_striding")])
def test_an_unknown_name_comes_with_the_one_that_was_meant(name, meant):
    with pytest.raises(registry.UnknownNameError) as error:
        registry.strategies([name])
    assert error.value.suggestion == meant


def test_a_plus_in_front_of_some_names_only_is_explained():
    with pytest.raises(
        OptionError, match=r"(?s)mixes two forms.* \+thread_striding,\+swizzle.* thread_striding,swizzle"
    ):
        registry.strategies(["+thread_striding", "swizzle"])
