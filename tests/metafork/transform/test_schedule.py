"""Schedules as text."""

import pytest

from metafork.transform.directive import text_of
from metafork.transform.schedule import ScheduleError, schedule_of
from metafork.transform.tile import Layout, Tail, Tile


def test_arguments_stand_in_their_order_or_by_name():
    assert schedule_of("tile(v, 4, strided, peel)") == (Tile("v", 4, Layout.STRIDED, Tail.PEEL),)
    assert schedule_of("tile( tail = peel, loop = v, factor = 4 )") == (Tile("v", 4, tail=Tail.PEEL),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tile(v, 4)",
        "tile(v, 4, layout=strided); tile(u, 8, tail=peel); interchange(k, z); cache(a); stride(32)",
        "specialize(B=16, s=4); promote(a, b); strips(k); strips(j, size=16); vectorize()",
    ],
)
def test_the_text_reads_back(text):
    assert text_of(schedule_of(text)) == text
    assert schedule_of(f" {text.replace(', ', ' ,').replace('; ', ' ;')} ;" if text else " ") == schedule_of(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tile", "`tile` is no directive"),
        ("tile(v, 4) cache(a)", "`tile(v, 4) cache(a)` is no directive"),
        ("tile(v, (4))", "is no directive"),
        (
            "split(v, 4)",
            "there is no directive `split`; there are specialize, tile, grow, interchange",
        ),
        ("tile(v)", "`tile(v)`: factor is missing"),
        ("tile(v, 4, 4, 4, 4)", "`4` has no place in `tile(loop, factor, layout, tail)`"),
        ("tile(v, 4, loop=u)", "`loop=u` has no place"),
        ("tile(v, factor=4, strided)", "`strided` has no place"),
        ("tile(v, four)", "factor"),
        ("tile(v, 1)", "factor is from 2 to 1024, not 1"),
        ("tile(v, 4, layout=rows)", "rows"),
        ("promote()", "`promote()`: arrays is missing"),
        ("specialize()", "`specialize()`: values is missing"),
        ("specialize(B=16, 4)", "`4` gives no parameter a value"),
        ("specialize(B=0)", "`specialize(B=0)`: values are at least 1"),
        ("stride(0)", "threads is from 1 to 1024, not 0"),
    ],
)
def test_what_is_no_schedule(text, words):
    with pytest.raises(ScheduleError) as error:
        schedule_of(text)
    assert words in str(error.value)
