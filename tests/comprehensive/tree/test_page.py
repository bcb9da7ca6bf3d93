"""report.html: its own JavaScript chooses the leaf that ``metafork select`` chooses, and shows nothing but text."""

import json
import random
import re
import shutil
import subprocess
from fractions import Fraction
from html.parser import HTMLParser

import pytest

import metafork
from metafork.comprehensive.options import machine_values
from metafork.comprehensive.tree import page
from metafork.comprehensive.tree.colours import KINDS, spans
from metafork.comprehensive.tree.document import TreeDocument
from metafork.comprehensive.tree.selection import MissingValueError, machine_point, select, without_unasked
from tests.comprehensive.tree.pages import (
    EXAMPLES,
    HOSTILE,
    PROTOTYPES,
    QUICK,
    hostile_page,
    made,
    page_of,
    skip_loudly,
    tree_of,
)

OPAQUE = """\
void masked(int n, int B, float a[n])
{
  int width = (n & 12) + B % 5;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < n / width; i++)
      meta_for (int j = 0; j < width; j++)
        a[i * width + j] = a[i * width + j] * 2;
  }
}
void twice(int n, int B, float a[n])
{
  meta_schedule {
    meta_for (int i = 0; i < n / B; i++)
      meta_for (int j = 0; j < B; j++)
        a[i * B + j] = a[i * B + j] * 2;
  }
}
"""
HARNESS = """
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answers = asked.points.map(([index, point]) => {
  const values = new Map(Object.entries(point).map(([name, text]) => [name, Walk.parse(text, true)]));
  const { point: _, path, end, ...found } = Walk.select(asked.schedules[index], values);
  return found;
});
console.log(JSON.stringify(answers));
"""
LARGE = [2**31, 2**53 + 1, 2**63 - 1, 10**30]


def part(text, name):
    return re.search(rf'<script [^>]*id="{name}">(.*?)</script>', text, re.DOTALL)[1]


def run_node(script, given):
    """Run a script with JSON on its input, and return the JSON that it prints."""
    node = shutil.which("node")
    if node is None:
        skip_loudly("there is no node: the JavaScript of report.html is NOT tested")
    completed = subprocess.run([node, "-e", script], input=json.dumps(given), capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def schedules_of(text):
    return json.loads(part(text, "data"))["schedules"]


def asked_of_node(text, points):
    """Run the walk of a page at points, given as (index of the schedule, numbers by name)."""
    written = [(index, {name: str(number) for name, number in point.items()}) for index, point in points]
    return run_node(part(text, "walk") + HARNESS, {"schedules": schedules_of(text), "points": written})


def walked(document):
    """The schedules as `metafork select` and the page walk them if only what decides is given."""
    return [without_unasked(one, ())[0] for one in document.schedules]


def expected(schedule, point):
    try:
        found = select(schedule, point)
    except MissingValueError as error:
        return {"missing": list(error.names)}
    return {
        "leaf": found.leaf,
        "missing": [],
        "outside": [str(one) for one in found.outside],
        "region": found.region,
        "violated": {str(leaf): [str(one) for one in failed] for leaf, failed in found.violated.items()},
        "estimates": {name: str(number) for name, number in found.estimates.items()},
        "derived": {name: str(number) for name, number in found.derived.items()},
        "variant": 0 if found.variant is None else found.variant.number,
        "passed": [[one.number, [str(missed) for missed in failed]] for one, failed in found.passed_over],
    }


def random_points(document, count, seed):
    """Points that lie at conditions as often as not: examples of leaves, moved a little, and numbers of any size."""
    rng = random.Random(seed)
    schedules = walked(document)
    for _ in range(count):
        index = rng.randrange(len(schedules))
        schedule = schedules[index]
        names = (*schedule.data, *schedule.program, *schedule.opaque, *schedule.machine)
        targets = {counter.limit for counter in schedule.counters if counter.kind == "performance"}
        point = {name: rng.choice([0, 1, 2, 3, 4, 8, 16, 31, 32, 100, 1000, 4096, 65536]) for name in names}
        if schedule.leaves and rng.random() < 0.7:
            witness = rng.choice(schedule.leaves).witness or {}
            point |= {name: number for name, number in witness.items() if name in names}
            changed = rng.choice(names)
            point[changed] += rng.choice([-1, 0, 1])
        if rng.random() < 0.1:
            point[rng.choice(names)] = rng.choice([*LARGE, -3])
        if rng.random() < 0.05:
            del point[rng.choice(names)]
        for name in targets & point.keys():
            point[name] = rng.choice([point[name], Fraction(1, 4), Fraction(7, 3), Fraction(2)])
        yield index, point


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (EXAMPLES / "matmul.mf", QUICK),
        (EXAMPLES / "matmul.mf", QUICK | {"machine": "T=256,Z=512"}),
        (
            EXAMPLES / "smooth.mf",
            {"counters": ["shared_memory", "bank_degree"], "strategies": ["granularity", "caching"]},
        ),
        (OPAQUE, QUICK),
        (OPAQUE, {"counters": ["threads_per_block"], "strategies": [], "machine": "T=256"}),
        (PROTOTYPES, QUICK),
    ],
)
def test_the_page_chooses_what_select_chooses(text, options):
    result = metafork.optimize(text, **options)
    points = list(random_points(result.document, 400, seed=3))
    answers = asked_of_node(page_of(result), points)
    seen = set()
    for (index, point), answer in zip(points, answers, strict=True):
        wanted = expected(walked(result.document)[index], point)
        assert {key: answer[key] for key in wanted} == wanted, point
        seen |= {(index, answer["leaf"])}
    leaves = {(index, leaf.id) for index, one in enumerate(result.document.schedules) for leaf in one.leaves}
    assert leaves < seen  # and some point had none


@pytest.mark.parametrize("name", ["matmul", "smooth", "transpose", "heat3d"])
def test_the_page_chooses_what_select_chooses_on_every_gpu(name):
    """Each GPU of the page, by its name, at powers of two and numbers beside them."""
    rng = random.Random(name)
    result = metafork.optimize(EXAMPLES / f"{name}.mf", machine="all", **QUICK)
    text = page_of(result)
    points, wanted = [], []
    for index, (data, schedule) in enumerate(zip(schedules_of(text), walked(result.document), strict=True)):
        gpus = [(gpu, numbers) for _, names, numbers in data["gpus"] for gpu in names]
        assert {"RTX 4090", "A100", "H100"} <= {gpu for gpu, _ in gpus}
        for gpu, numbers in gpus * 3:
            asked = {
                one: 2 ** rng.randrange(11) + rng.choice([0, 0, 0, 1]) for one in (*data["data"], *data["program"])
            }
            points.append((index, dict(numbers) | asked))
            wanted.append(expected(schedule, machine_point(schedule, machine_values(gpu)) | asked))
    answers = asked_of_node(text, points)
    for (_, point), answer, want in zip(points, answers, wanted, strict=True):
        assert answer == want, point
    assert any(answer["leaf"] for answer in answers)


def test_the_page_asks_what_select_asks():
    """Of n, which decides nothing, there is only a word; GPUs that the tree is not for are not offered."""
    (schedule,) = schedules_of(page_of(metafork.optimize(EXAMPLES / "matmul.mf", **QUICK)))
    assert (schedule["unasked"], schedule["data"], schedule["program"]) == (["n"], [], ["B0", "ub1", "s"])
    assert "dim0 >= 1" in schedule["applies"]  # dim0 = n/B0
    assert not any("dim0" in one["text"] for one in schedule["start"])
    presets = [preset for preset, _, _ in schedule["gpus"]]
    assert "sm_89" in presets
    assert not {"sm_20", "sm_35", "gfx942"} & set(presets)


@pytest.mark.parametrize(
    ("options", "opening"),
    [
        (QUICK | {"static": {"B0": (16,), "ub1": (16,), "s": (4,)}}, ["sm_80", {"B0": "16", "ub1": "16", "s": "4"}]),
        (QUICK | {"static": {"s": (8,)}}, ["sm_80", {"s": "8"}]),
        (QUICK | {"machine": "h100"}, ["sm_90", {}]),
        (QUICK | {"machine": "T=16,Z=300"}, [None, {}]),
    ],
)
def test_the_page_opens_at_the_first_instance_of_the_first_leaf(options, opening):
    result = metafork.optimize(EXAMPLES / "matmul.mf", **options)
    text = page_of(result)
    preset, numbers = schedules_of(text)[0]["opening"]
    assert preset == opening[0]
    assert opening[1].items() <= dict(numbers).items()
    (answer,) = asked_of_node(text, [(0, dict(numbers))])
    assert (answer["leaf"], answer["variant"]) == (1, 1) if opening[1] else answer["leaf"] == 1


def test_the_page_opens_with_the_targets_that_counters_have():
    """Leaf 1, the tiles with conflicts, is for a target that nobody asked for."""
    options = {"counters": ["shared_memory", "bank_degree"], "strategies": ["granularity", "caching", "swizzle"]}
    text = page_of(metafork.optimize(EXAMPLES / "aos.mf", machine="all", **options))
    schedule = schedules_of(text)[1]
    preset, numbers = schedule["opening"]
    assert (preset, dict(numbers)["D"]) == ("sm_80", "1")
    assert [answer["leaf"] for answer in asked_of_node(text, [(1, dict(numbers))])] == [2]


LINKS = """
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(asked.fragments.map((fragment) => {
  try {
    const state = Link.read(fragment, asked.schedules);
    const { schedule, values, ...rest } = state;
    return { schedule: schedule.name, values: [...values], ...rest, again: state.axes && Link.write(state) };
  } catch (error) {
    return error.message;
  }
})));
"""


def test_an_address_holds_the_state():
    text = page_of(metafork.optimize(PROTOTYPES, order="paper", **QUICK))
    whole = "#/input_k0/RTX%204090/2/toString/?__proto__=16&toString=4"
    wrong = {
        "#input_k0": "it is not of this page",
        "#/g_k0": "there is no schedule g_k0",
        "#/input_k0/RTX%209999": "the tree is not for a GPU RTX 9999",
        "#/input_k0/A100/9": "there is no leaf 9",
        "#/input_k0/A100/1/toString/toString": "the map has no axes toString, toString",
        "#/input_k0/A100/1/toString": "the map has no axes toString",
        "#/input_k0/A100?valueOf=1": "there is no parameter valueOf",
        "#/input_k0/A100?toString=1/2": "toString=1/2 is not a number",
        "#/input_k0/A100?toString": "toString= is not a number",
        "#/input_k0/%E0": "URI malformed",
    }
    given = {"schedules": schedules_of(text), "fragments": [whole, "#/input_k0", *wrong]}
    state, name_alone, *messages = run_node(part(text, "walk") + part(text, "link") + LINKS, given)
    values = [["__proto__", "16"], ["toString", "4"]]
    asked = {
        "schedule": "input_k0",
        "gpu": "RTX 4090",
        "leaf": 2,
        "axes": ["toString", ""],
        "values": values,
        "again": whole,
    }
    assert state == asked
    assert name_alone["schedule"] == "input_k0"
    assert messages == list(wrong.values())


KINDS_OF_WORDS = [
    (
        '#pragma x\nmeta_for (int i = 0; i < n2; i++) /* for\nall */ x[i] = f("a // \\"b", 1.5e-3f, 0L); // 1\n',
        [
            ("directive", "#pragma x\n"),
            ("keyword", "meta_for"),
            ("type", "int"),
            ("number", "0"),
            ("comment", "/* for\nall */"),
            ("text", '"a // \\"b"'),
            ("number", "1.5e-3f"),
            ("number", "0L"),
            ("comment", "// 1\n"),
        ],
    ),
    (
        "/* \U0001f600 \u00e4 */ __global__ void k(float4 x)",
        [
            ("comment", "/* \U0001f600 \u00e4 */"),
            ("keyword", "__global__"),
            ("type", "void"),
            ("type", "float4"),
        ],
    ),
    (
        "meta_schedule cache(x) { METAFORK_MUL(threadIdx.x, 2) }",
        [
            *(("keyword", word) for word in ("meta_schedule", "cache")),
            *(("builtin", word) for word in ("METAFORK_MUL", "threadIdx")),
            ("number", "2"),
        ],
    ),
    ("no C at all: $ ` @ \\ 'x", []),
    ("", []),
]


@pytest.mark.parametrize(("text", "expected"), KINDS_OF_WORDS)
def test_words_have_colours(text, expected):
    rest, found = text.encode("utf-16-le"), []
    for letter, length in re.findall(r"([a-z_])(\d*)", spans(text)):
        at = 2 * int(length or 1)
        found.append((letter, rest[:at].decode("utf-16-le")))
        rest = rest[at:]
    assert "".join(word for _, word in found) == text
    found = [(KINDS[letter], word) for letter, word in found if letter != "_"]
    assert found == expected


COMPILED = {"counters": ["registers_per_thread"], "strategies": [], "static": {"s": (2, 4), "B": (128,)}}


def test_the_page_names_the_variant_that_select_names():
    result = metafork.optimize(EXAMPLES / "smooth.mf", machine="all", **COMPILED)
    (schedule,) = result.document.schedules
    (leaf,) = schedule.leaves
    assert len(leaf.variants) == 3
    assert any(one.limits for one in leaf.variants)
    limits = {"RB": 65536, "T": 1024, "Z": 12288, "block_dim_x": 1024}
    points = [
        (0, limits | {"s": s, "B": block, "R": registers})
        for s in (1, 2, 4)
        for block in (127, 128)
        for registers in range(20, 50)
    ]
    answers = asked_of_node(page_of(result), points)
    (schedule,) = walked(result.document)
    for (_, point), answer in zip(points, answers, strict=True):
        assert answer == expected(schedule, point), point
    assert {(answer["variant"], bool(answer["passed"])) for answer in answers if answer["leaf"]} == {
        (1, False),
        (2, False),
        (3, False),
        (3, True),
    }


def test_every_kind_of_number():
    schedule = made()
    text = page.html(TreeDocument("made.mf", (schedule,)), [tree_of(schedule)], {})
    numbers = [*range(-2, 14), 10**25]
    points = [(0, {"x": x, "y": y, "P": p}) for x in numbers for y in numbers for p in (0, Fraction(-7, 2), 5)]
    answers = asked_of_node(text, points)
    for (_, point), answer in zip(points, answers, strict=True):
        assert answer == expected(schedule, point), point
    assert {answer["leaf"] for answer in answers} == {0, 1, 2}
    assert any("1 <= y - 3" in line for answer in answers for line in answer["outside"])


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


def test_texts_of_the_input_are_texts():
    text = hostile_page()
    elements = Elements()
    elements.feed(text)
    names = [tag for tag, _ in elements.tags]
    assert names == ["html", "head", *["meta"] * 3, "title", "style", "body", "noscript", *["script"] * 5]
    data = json.loads(part(text, "data"))
    (schedule,) = data["schedules"]
    kernel = schedule["leaves"][0]["variants"][-1]["sources"][1]
    assert data["source"] == schedule["name"] == kernel == HOSTILE
    scripts = "".join(part(text, name) for name in page.SCRIPTS)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", scripts)


def test_nothing_comes_from_outside():
    text = page_of(metafork.optimize(EXAMPLES / "smooth.mf", order="paper", **QUICK))
    assert "default-src &#x27;none&#x27;" in text
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|<link|\bsrc=|fetch\(|XMLHttpRequest", text)
