import re
import xml.etree.ElementTree as ET

import pytest

from metafork.comprehensive.case_discussion.discussion import Discussion
from metafork.comprehensive.tree import render
from tests.comprehensive.case_discussion.made_up import MadeCounter, MadeStrategy, document, jacobi, start, symbol

SVG = "{http://www.w3.org/2000/svg}"


def drawn(counters, strategies, begin=None, **options):
    begin = begin or start()
    outcome = Discussion(begin, counters, strategies).run(())
    text = render.dot(document(begin, outcome, strategies), **options)
    return outcome, text, ET.fromstring(render.svg(text))


def texts(svg):
    return [element.text or "" for element in svg.iter(f"{SVG}text")]


def large():
    """Three levels of two counters, long conditions, more than 50 leaves."""
    s, b, n = symbol("s"), symbol("B"), symbol("N")
    names = [f"O{i}" for i in range(16)]
    both = frozenset({"registers_per_thread", "shared_memory"})
    counters = [
        MadeCounter("registers_per_thread", "R", lambda version: 180 - sum(1 + int(name[1:]) for name in version)),
        MadeCounter(
            "shared_memory",
            "Z",
            lambda version: (40 - sum(int(name[1:]) % 2 for name in version)) * s * b + b * b + n * b + s * s + 2,
        ),
    ]
    return counters, [MadeStrategy(n, both if int(n[1:]) % 2 else frozenset(both - {"shared_memory"})) for n in names]


def test_conditions_leaves_and_strategies_are_in_the_picture():
    _, _, svg = drawn(*jacobi())
    found = texts(svg)
    for text in ("2*s*B + 2 <= Z", "2*B + 2 <= Z", "leaf 3", "+ granularity", "the serial code runs"):
        assert any(text in line for line in found), text
    assert any("granularity, caching, cse1, cse2" in line for line in found)


def test_accept_and_refuse_differ_in_line_head_and_word():
    _, _, svg = drawn(*jacobi())
    looks = {"accept": set(), "refuse": set()}
    for edge in svg.iter(f"{SVG}g"):
        if edge.get("class") == "edge":
            word = next(w for w in looks if any(w in line for line in texts(edge)))
            [path] = edge.findall(f"{SVG}path")
            [head] = edge.findall(f"{SVG}polygon")
            looks[word].add((path.get("stroke-dasharray") is not None, head.get("fill") == "none"))
    assert looks == {"accept": {(False, False)}, "refuse": {(True, True)}}


def test_decided_conditions_are_left_out_unless_asked_for():
    counters, strategies = jacobi()
    _, short, _ = drawn(counters, strategies)
    _, full, svg = drawn(counters, strategies, full=True)
    assert short.count('shape=box, style="rounded') < full.count('shape=box, style="rounded')
    assert any("Z >= 0" in line for line in texts(svg))


def ends_of_edges(text):
    """Return where the edges of a drawing end and begin."""
    for place in re.findall(r'-> \w+ \[pos="e,(\S+ \S+)', text):
        yield tuple(map(float, re.split("[ ,]", place)))


def test_fifty_leaves_are_legible():
    outcome, text, svg = drawn(*large())
    assert len(outcome.cases) >= 50
    boxes = []
    for node in svg.iter(f"{SVG}g"):
        if node.get("class") != "node":
            continue
        shape = next(iter([*node.findall(f"{SVG}polygon"), *node.findall(f"{SVG}path")]), None)
        if shape is None:
            continue  # the title
        numbers = [float(x) for x in re.findall(r"-?\d+\.?\d*", shape.get("points") or shape.get("d"))]
        box = min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2])
        boxes.append(box)
        for line in node.iter(f"{SVG}text"):
            size = float(line.get("font-size"))
            assert size >= 10
            assert len(line.text or "") <= render.WIDTH + 12
            # A font of fixed width is at most 0.61 em wide.
            width = 0.61 * size * len(line.text or "")
            left = float(line.get("x")) - (width / 2 if line.get("text-anchor") == "middle" else 0)
            assert box[0] - 1 <= left
            assert left + width <= box[2] + 1
    for index, one in enumerate(boxes):
        for other in boxes[:index]:
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart
    lines = [(min(x, to_x), min(y, to_y), max(x, to_x), max(y, to_y)) for to_x, to_y, x, y in ends_of_edges(text)]
    assert len(lines) == len(boxes) - 1
    for index, one in enumerate(lines):
        assert one[0] == one[2] or one[1] == one[3]
        for other in lines[:index]:
            apart = one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
            assert apart


def chain(length, dead=()):
    """``length`` strategies that take a word of shared memory each; after those of ``dead`` registers never suffice."""
    names = [f"O{i}" for i in range(length)]
    needed = frozenset({"shared_memory"})
    words = MadeCounter("shared_memory", "Z", lambda version: symbol("s") + 2 * length - len(version))
    registers = MadeCounter("registers", "R", lambda version: symbol("B") + 9 if len(version) in dead else 0)
    return [words, registers], [MadeStrategy(name, needed) for name in names]


def test_a_chain_that_is_not_long_is_drawn_whole():
    outcome, text, _ = drawn(*chain(render.LONGEST_CHAIN - 1))
    assert "more conditions" not in text
    assert text.count("[shape=box, penwidth") == len(outcome.cases)


@pytest.mark.parametrize("dead", [(), (40, 41, 90)])
def test_the_midst_of_a_long_chain_is_one_box(dead):
    outcome, text, svg = drawn(*chain(120, dead))
    conditions = 121
    hidden = conditions - 2 * render.ENDS
    found = texts(svg)
    assert f"{hidden} more conditions" in found
    assert f"+ O{render.ENDS}" in " ".join(found)
    # The first and the last conditions and their leaves are there, and what the others lead to is named.
    for number in (*range(render.ENDS), *range(conditions - render.ENDS, conditions)):
        assert any(line.startswith(f"s + {240 - number} <= Z") for line in found), number
    assert not any(line.startswith("s + 180 <= Z") for line in found)
    numbers = [int(name) for name in re.findall(r"k0_leaf(\d+) \[shape", text)]
    [others] = [line for line in found if line.startswith("leaves ")]
    assert others.endswith(" or no leaf") == bool(dead)
    named = set()
    for first, last in re.findall(r"(\d+)(?: to (\d+))?", others):
        named |= set(range(int(first), int(last or first) + 1))
    assert named.isdisjoint(numbers)
    assert named | set(numbers) == set(range(1, len(outcome.cases) + 1))
    # Every edge leads somewhere, and in full all is drawn.
    drawn_names = set(re.findall(r"^ *(k0_\w+) \[", text, re.MULTILINE))
    assert set(re.findall(r"(?:-> |^ *)(k0_\w+) (?=->|\[label=\")", text, re.MULTILINE)) <= drawn_names
    whole = render.dot(document(start(), outcome, chain(120, dead)[1]), full=True)
    assert len(re.findall(r"leaf\d+ \[shape", whole)) == len(outcome.cases)
    assert "more conditions" not in whole


def test_equal_trees_give_equal_pictures():
    counters, strategies = large()
    first = render.svg(drawn(counters, strategies)[1])
    assert first == render.svg(drawn(counters, strategies)[1])


def test_names_are_escaped():
    begin = start()
    outcome = Discussion(begin, *jacobi()).run(())
    odd = document(begin, outcome, jacobi()[1], source='a"b\\<c>&.mf')
    assert any('a"b\\<c>&.mf' in line for line in texts(ET.fromstring(render.svg(render.dot(odd)))))


def test_without_graphviz_there_is_a_way_out(monkeypatch):
    monkeypatch.setattr(render.shutil, "which", lambda *_args, **_options: None)
    with pytest.raises(render.NoGraphvizError, match="pip install graphviz-pure"):
        render.svg("digraph {}")


def test_the_installed_graphviz_pure_is_found(monkeypatch):
    real = render.shutil.which
    monkeypatch.setattr(render.shutil, "which", lambda name, path=None: real(name, path=path) if path else None)
    assert render.svg("digraph {a}").count("<svg") == 1
