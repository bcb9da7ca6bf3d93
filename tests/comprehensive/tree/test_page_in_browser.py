"""report.html in Chromium: what fields, the map, keys and addresses do, and that its own policy admits its scripts."""

import json
import re
import shutil
import subprocess
from html import unescape

import metafork
from metafork.runtime.machine import PRESETS
from tests.comprehensive.tree.pages import (
    EXAMPLES,
    PROTOTYPES,
    QUICK,
    hostile_page,
    page_of,
    skip_loudly,
)

EXERCISE = """
const field = (name, text) => {
  view.fields.get(name).text.value = text;
  view.fields.get(name).text.dispatchEvent(new Event("input"));
};
const lit = () => [...view.tree.querySelectorAll("button.leaf.taken b")].map((one) => one.textContent).join("+");
const said = [];
for (const [name, text] of POINT) field(name, text);
said.push(lit());
field("Z", "x");
said.push(lit(), view.verdict.textContent, view.chart.element.hidden);
field("Z", "300");
said.push(lit(), view.tree.querySelector("summary .numbers").textContent, view.gpu.value);
view.gpu.value = "H100";
view.gpu.dispatchEvent(new Event("change"));
said.push(view.fields.get("Z").text.value, decodeURI(location.hash));
const slider = view.fields.get("s").slider;
slider.value = 8;
slider.dispatchEvent(new Event("input"));
said.push(view.fields.get("s").text.value, lit());
view.search.value = "leaf 2";
view.search.dispatchEvent(new Event("input"));
const seen = [...view.tree.querySelectorAll("button.leaf")].filter((one) => one.offsetParent);
said.push(seen.map((one) => one.textContent));
const hits = (text) => {
  view.search.value = text;
  view.search.dispatchEvent(new Event("input"));
  return [...view.hits.querySelectorAll("button")];
};
const [gpu] = hits("4090");
gpu.click();
said.push(gpu.textContent, view.gpu.value, view.fields.get("Z").text.value, lit());
const instance = hits("b = 128").find((one) => one.textContent.startsWith("leaf 2"));
instance.click();
said.push(instance.textContent, view.leaf.querySelector("details.variant[open] summary").textContent);
hits("");
said.push(view.hits.childNodes.length);
view.gpu.value = "H100";
view.gpu.dispatchEvent(new Event("change"));
view.tree.querySelectorAll("button.leaf")[0].click();
said.push(view.leaf.querySelectorAll("pre").length, view.leaf.querySelector("h3").textContent);
view.leaf.querySelector("h3 button").click();
said.push(lit(), view.gpu.value, view.fields.get("s").text.value);
const source = view.leaf.querySelector(".variant details");
source.addEventListener("toggle", () => {
  said.push(source.querySelectorAll("pre").length, source.querySelector(".keyword").textContent);
  document.title = JSON.stringify(said);
});
source.open = true;
"""


def in_browser(text, tmp_path, fragment=""):
    """Return the title of a page after its scripts have run."""
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        skip_loudly("there is no Chromium: the view of report.html is NOT tested")
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--virtual-time-budget=10000"]  # events that scripts wait for still come
    command = [browser, *options, "--dump-dom", (tmp_path / "page.html").as_uri() + fragment]
    completed = subprocess.run(command, capture_output=True, text=True)
    title = re.search(r"<title>(.*?)</title>", completed.stdout, re.DOTALL)[1]
    return unescape(title), completed.stdout


def test_the_fields_light_up_the_leaf(tmp_path):
    options = {"counters": ["shared_memory"], "strategies": ["granularity", "caching"], "static": {"B": (128,)}}
    result = metafork.optimize(EXAMPLES / "smooth.mf", order="paper", **options)
    text = re.sub(r"<meta http-equiv[^>]*>", "", page_of(result))
    point = [["s", "256"], ["B", "256"], ["Z", "100000"]]
    text = text.replace("</body>", f"<script>const POINT = {json.dumps(point)};{EXERCISE}</script></body>")
    title, _ = in_browser(text, tmp_path)
    words = str(PRESETS["sm_90"].shared_words)
    assert json.loads(title) == [
        "leaf 1",
        *("", "No number is given for Z.", True),
        *("leaf 2", "65538 > 300", ""),
        *(words, "#/smooth_k0/H100/2/s/B?s=256&B=256"),
        *("256", "leaf 2"),
        ["leaf 2 x in shared memory, s joined the grid"],
        *("RTX 4090 (sm_89)", "RTX 4090", str(PRESETS["sm_89"].shared_words), "leaf 2"),
        *("leaf 2, variant 1: for B = 128", "variant 1: for B = 128 smooth_k0_leaf2_v1"),
        *(0, 0, "leaf 1: x in shared memory go there"),
        *("leaf 1", "H100", "128"),
        *(2, "meta_schedule"),
    ]


def test_names_of_c_are_no_names_of_javascript(tmp_path):
    text = re.sub(r"<meta http-equiv[^>]*>", "", page_of(metafork.optimize(PROTOTYPES, order="paper", **QUICK)))
    exercise = "document.title = [...view.fields].map(([name, field]) => name + '=' + field.text.value).join(' ');"
    title, dom = in_browser(text.replace("</body>", f"<script>{exercise}</script></body>"), tmp_path)
    assert "__proto__=256 toString=4" in title
    assert "is chosen" in dom
    assert 'title="Z: shared memory per block, in words of 4 bytes' in dom


STEPS = """
const said = [];
const say = () => said.push([view.schedule.name, view.gpu.value, view.shown, message.textContent]);
const next = () => new Promise((done) => window.addEventListener("hashchange", () => setTimeout(done), { once: true }));
const cell = (name) => [...view.chart.table.querySelectorAll("button")].find((one) => one.title.startsWith(name));
const numbers = () => ["__proto__", "toString"].map((name) => view.fields.get(name).text.value);
const steps = async () => {
  say();
  cell("__proto__ = 4, toString = 2").click();
  const current = cell("__proto__ = 4, toString = 2");
  said.push([...numbers(), current.ariaCurrent, current.tabIndex]);
  await next();
  location.hash = "#/NAME/RTX%209999";
  await next();
  say();
  history.back();
  await next();
  said.push(numbers());
  history.back();
  await next();
  say();
  cell("__proto__ = 4, toString = 2").focus();
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
  said.push(document.activeElement.title.split(":")[0]);
  location.hash = "#/NAME?Z=300";
  await next();
  said.push([view.gpu.value, view.fields.get("Z").text.value]);
  document.title = JSON.stringify(said);
};
// Steps before a page is loaded are none of the browser's history.
window.addEventListener("load", () => setTimeout(() => steps().catch((error) => (document.title = error.stack))));
"""


def test_steps_are_in_the_address(tmp_path):
    result = metafork.optimize(PROTOTYPES, order="paper", **QUICK)
    name = result.document.schedules[0].name
    text = re.sub(r"<meta http-equiv[^>]*>", "", page_of(result))
    text = text.replace("</body>", f"<script>{STEPS.replace('NAME', name)}</script></body>")
    title, _ = in_browser(text, tmp_path, f"#/{name}/RTX%204090/1?toString=8")
    assert json.loads(title) == [
        [name, "RTX 4090", 1, ""],
        ["4", "2", "true", 0],
        [name, "RTX 4090", 1, "The part of the address after # is ignored: the tree is not for a GPU RTX 9999."],
        ["4", "2"],
        [name, "RTX 4090", 1, ""],
        "__proto__ = 4, toString = 4",
        ["", "300"],
    ]


def test_a_hostile_page_runs_under_its_own_policy(tmp_path):
    _, dom = in_browser(hostile_page(), tmp_path)
    assert "is chosen" in dom  # the scripts that the policy admits ran
    assert "<img" not in dom
