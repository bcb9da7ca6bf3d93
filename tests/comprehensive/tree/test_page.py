"""report.html: its own JavaScript chooses the leaf that ``metafork select`` chooses, and shows nothing but text."""

import json
import random
import re
import shutil
import subprocess
import warnings
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

import metafork
from comprehensive.leaf_files import LeafTexts
from comprehensive.tree import page
from comprehensive.tree.document import LeafDocument, ScheduleDocument, TreeDocument, VariantDocument
from comprehensive.tree.schedule_tree import CounterInfo, LeafReference, Node, NoLeaf, ScheduleTree
from comprehensive.tree.selection import MissingValueError, select
from evaluators.counter import CounterValue
from metafork.algebra.polynomial import ONE, Polynomial, at_most, equal, less_than
from metafork.algebra.symbols import DerivedSymbol

EXAMPLES = Path(__file__).parents[3] / "examples"
QUICK = {"counters": ["threads_per_block", "shared_memory"], "strategies": ["granularity", "caching"]}
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
PROTOTYPES = """\
void f(int constructor, int __proto__, int toString, float a[constructor])
{
  int valueOf = constructor / (__proto__ * toString);
  meta_schedule cache(a) {
    meta_for (int i = 0; i < valueOf; i++)
      meta_for (int j = 0; j < __proto__; j++)
        for (int k = 0; k < toString; k++) {
          int p = (i * toString + k) * __proto__ + j;
          a[p] = a[p] * 2;
        }
  }
}
"""
HARNESS = """
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answers = asked.points.map(([index, point]) => {
  const values = new Map(Object.entries(point).map(([name, text]) => [name, Walk.parse(text, true)]));
  const { point: _, path, ...found } = Walk.select(asked.schedules[index], values);
  return found;
});
console.log(JSON.stringify(answers));
"""
LARGE = [2**31, 2**53 + 1, 2**63 - 1, 10**30]


def page_of(result):
    return page.html(result.document, result.schedules, LeafTexts(result.analyses).sources(result))


def skip_loudly(reason):
    warnings.warn(reason, stacklevel=2)  # the summary of warnings has it, whatever pytest says of skips
    pytest.skip(reason)


def part(text, name):
    return re.search(rf'<script [^>]*id="{name}">(.*?)</script>', text, re.DOTALL)[1]


def asked_of_node(text, points):
    """Run the walk of a page at points, given as (index of the schedule, numbers by name)."""
    node = shutil.which("node")
    if node is None:
        skip_loudly("there is no node: the JavaScript of report.html is NOT tested")
    written = [(index, {name: str(number) for name, number in point.items()}) for index, point in points]
    asked = json.dumps({"schedules": json.loads(part(text, "data"))["schedules"], "points": written})
    command = [node, "-e", part(text, "walk") + HARNESS]
    completed = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


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
    for _ in range(count):
        index = rng.randrange(len(document.schedules))
        schedule = document.schedules[index]
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
        wanted = expected(result.document.schedules[index], point)
        assert {key: answer[key] for key in wanted} == wanted, point
        seen |= {(index, answer["leaf"])}
    leaves = {(index, leaf.id) for index, one in enumerate(result.document.schedules) for leaf in one.leaves}
    assert leaves < seen  # and some point had none


COMPILED = {"counters": ["registers_per_thread"], "strategies": [], "static": {"s": (2, 4), "B": (128,)}}


def test_the_page_names_the_variant_that_select_names():
    result = metafork.optimize(EXAMPLES / "smooth.mf", machine="all", **COMPILED)
    (schedule,) = result.document.schedules
    (leaf,) = schedule.leaves
    assert len(leaf.variants) == 3
    assert any(one.limits for one in leaf.variants)
    limits = {"RB": 65536, "T": 1024, "Z": 12288, "block_dim_x": 1024}
    points = [
        (0, limits | {"n": 4098, "s": s, "B": block, "R": registers})
        for s in (1, 2, 4)
        for block in (127, 128)
        for registers in range(20, 50)
    ]
    answers = asked_of_node(page_of(result), points)
    for (_, point), answer in zip(points, answers, strict=True):
        assert answer == expected(schedule, point), point
    assert {(answer["variant"], bool(answer["passed"])) for answer in answers if answer["leaf"]} == {
        (1, False),
        (2, False),
        (3, False),
        (3, True),
    }


def symbol(name):
    return Polynomial.symbol(name)


def made(name="made", **changes):
    """A schedule with all kinds of derived symbols, fractions, an equation, a quotient, and a region without a leaf."""
    x, y, low, high = map(symbol, ("x", "y", "low", "high"))
    half = Polynomial({(("x", 3),): Fraction(1, 2), (("x", 1), ("y", 2)): Fraction(-2, 3)})
    root = Node(
        "cost",
        CounterValue(x * y, y + 1),
        less_than(half, symbol("P") * (y + 1)),
        Node("cost", CounterValue(x), equal(low, high), LeafReference(1), "other", LeafReference(2)),
        None,
        NoLeaf("too much", (at_most(1, x),)),
    )
    counters = {"cost": CounterValue(x * y + Fraction(1, 3), y + 1)}
    fields = {
        "name": name,
        "function": "made",
        "line": 1,
        "data": ("x",),
        "program": ("y",),
        "machine": ("P",),
        "fields": {"P": "cost"},
        "derived": (
            DerivedSymbol("low", "floor", (x * x, y - 3)),
            DerivedSymbol("up", "ceiling", (x - y * y, Polynomial.constant(4))),
            DerivedSymbol("high", "maximum", (symbol("up"), x - 5, low)),
            DerivedSymbol("least", "minimum", (x, y, symbol("up"))),
        ),
        "start": (at_most(symbol("least"), symbol("up") + 7),),
        "counters": (CounterInfo("cost", "performance", "P", True, Fraction(1, 4)),),
        "strategies": ("other",),
        "root": root,
        "leaves": (
            LeafDocument(
                1,
                ((equal(low, high),), (at_most(x, 9), at_most(ONE, y))),
                (),
                (VariantDocument(1, "k1_v1", limits=(at_most(half, y),)), VariantDocument(2, "k1", (), None, counters)),
            ),
            LeafDocument(
                2,
                ((less_than(high, low), at_most(y, 2)), (at_most(x, 3),)),
                (),
                (VariantDocument(1, "k2", ("other",), None, counters),),
            ),
        ),
        "fixed": {"W": Fraction(1, 3)},
    }
    return ScheduleDocument(**(fields | changes))


def tree_of(schedule, notes=()):
    """The part of a tree that the page reads beside the document."""
    tree = object.__new__(ScheduleTree)
    object.__setattr__(tree, "notes", notes)
    return tree


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


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)><!--<script>&\u2028'\""


def hostile_page():
    schedule = made(HOSTILE, function=HOSTILE, strategies=(HOSTILE,))
    sources = {kernel: page.LeafSource(HOSTILE, HOSTILE) for kernel in ("k1", "k2")}
    return page.html(TreeDocument(HOSTILE, (schedule,)), [tree_of(schedule, ((HOSTILE, HOSTILE),))], sources)


def test_texts_of_the_input_are_texts():
    text = hostile_page()
    elements = Elements()
    elements.feed(text)
    names = [tag for tag, _ in elements.tags]
    assert names == [
        "html",
        "head",
        "meta",
        "meta",
        "meta",
        "title",
        "style",
        "body",
        "noscript",
        "script",
        "script",
        "script",
    ]
    data = json.loads(part(text, "data"))
    assert (
        data["source"]
        == data["schedules"][0]["name"]
        == data["schedules"][0]["leaves"][0]["variants"][-1]["cuda"]
        == HOSTILE
    )
    view = part(text, "view")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", view)


def test_nothing_comes_from_outside():
    text = page_of(metafork.optimize(EXAMPLES / "smooth.mf", order="paper", **QUICK))
    assert "default-src &#x27;none&#x27;" in text
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|<link|\bsrc=|fetch\(|XMLHttpRequest", text)


EXERCISE = """
const view = VIEWS[0];
const field = (name, text) => {
  view.fields.get(name).text.value = text;
  view.fields.get(name).text.dispatchEvent(new Event("input"));
};
const lit = () => [...view.tree.querySelectorAll("button.leaf.taken b")].map((one) => one.textContent).join("+");
const said = [];
for (const [name, text] of POINT) field(name, text);
said.push(lit());
field("Z", "x");
said.push(lit(), view.verdict.textContent);
field("Z", "300");
said.push(lit(), view.tree.querySelector("summary .numbers").textContent);
view.preset.value = "sm_90";
view.preset.dispatchEvent(new Event("change"));
said.push(view.fields.get("Z").text.value);
view.fields.get("Z").slider.value = 0;
view.fields.get("Z").slider.dispatchEvent(new Event("input"));
said.push(lit(), view.preset.value);
view.search.value = "leaf 2";
view.search.dispatchEvent(new Event("input"));
const seen = [...view.tree.querySelectorAll("button.leaf")].filter((one) => one.offsetParent);
said.push(seen.map((one) => one.textContent));
view.search.value = "";
view.search.dispatchEvent(new Event("input"));
view.tree.querySelectorAll("button.leaf")[0].click();
said.push(view.leaf.querySelectorAll("pre").length, view.leaf.querySelector("h3").textContent);
document.title = JSON.stringify(said);
"""


def in_browser(text, tmp_path):
    """Return the title of a page after its scripts have run."""
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        skip_loudly("there is no Chromium: the view of report.html is NOT tested")
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [browser, *options, "--dump-dom", (tmp_path / "page.html").as_uri()]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    title = re.search(r"<title>(.*?)</title>", completed.stdout, re.DOTALL)[1]
    return unescape(title), completed.stdout


def test_the_fields_light_up_the_leaf(tmp_path):
    result = metafork.optimize(
        EXAMPLES / "smooth.mf", counters=["shared_memory"], strategies=["granularity", "caching"], order="paper"
    )
    text = re.sub(r"<meta http-equiv[^>]*>", "", page_of(result))
    point = [["n", "1000002"], ["s", "256"], ["B", "256"], ["Z", "100000"]]
    text = text.replace("</body>", f"<script>const POINT = {json.dumps(point)};{EXERCISE}</script></body>")
    title, _ = in_browser(text, tmp_path)
    assert json.loads(title) == [
        "leaf 1",
        "",
        "No number is given for Z.",
        "leaf 2",
        "65538 > 300",
        str(metafork.Machine.fields(page.PRESETS["sm_90"])["shared_words"]),
        "leaf 3",
        "",
        ["leaf 2 x in shared memory, s joined the grid"],
        2,
        "leaf 1: x in shared memory go to an example",
    ]


VARIANTS = """
const [view] = VIEWS;
const at = (point) => {
  for (const [name, text] of point) {
    view.fields.get(name).text.value = text;
    view.fields.get(name).text.dispatchEvent(new Event("input"));
  }
  const lit = [...view.leaf.querySelectorAll(".variant.taken summary")].map((one) => one.textContent);
  return [view.verdict.textContent.split(")").slice(-1)[0], lit];
};
document.title = JSON.stringify(POINTS.map(at));
"""


def test_the_leaf_shows_its_variants(tmp_path):
    result = metafork.optimize(EXAMPLES / "smooth.mf", **COMPILED)
    text = re.sub(r"<meta http-equiv[^>]*>", "", page_of(result))
    points = [[["n", "4098"], ["B", "128"], ["R", "255"], ["s", s]] for s in ("2", "3")]
    script = f"<script>const POINTS = {json.dumps(points)};{VARIANTS}</script></body>"
    title, _ = in_browser(text.replace("</body>", script), tmp_path)
    variants = result.document.schedules[0].leaves[0].variants
    assert json.loads(title) == [
        [f" is chosen, variant 1: {variants[0].kernel}", [f"variant 1: for s = 2, B = 128 {variants[0].kernel}"]],
        [f" is chosen, variant 3: {variants[2].kernel}", [f"variant 3: as written {variants[2].kernel}"]],
    ]


def test_names_of_c_are_no_names_of_javascript(tmp_path):
    text = re.sub(r"<meta http-equiv[^>]*>", "", page_of(metafork.optimize(PROTOTYPES, **QUICK)))
    exercise = "document.title = [...VIEWS[0].fields].map(([name, field]) => name + '=' + field.text.value).join(' ');"
    title, dom = in_browser(text.replace("</body>", f"<script>{exercise}</script></body>"), tmp_path)
    assert "constructor=1 __proto__=1 toString=1" in title
    assert "is chosen" in dom


def test_a_hostile_page_runs_under_its_own_policy(tmp_path):
    _, dom = in_browser(hostile_page(), tmp_path)
    assert "is chosen" in dom  # the scripts that the policy admits ran
    assert "<img" not in dom
