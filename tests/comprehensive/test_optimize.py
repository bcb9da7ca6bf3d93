import inspect
import json
import re
from base64 import b64decode
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

import metafork
from metafork.algebra.polynomial import Polynomial, at_most
from metafork.algebra.prover import Verdict
from metafork.analysis.analyses import NVIDIA, Hardware
from metafork.comprehensive.case_discussion.properties import (
    Judge,
    Subject,
    consistent,
    covers_start,
    disjoint,
    height_bound,
)
from metafork.comprehensive.emit import rendered_files
from metafork.comprehensive.options import machine_limits
from metafork.comprehensive.registry import PAPER_STRATEGIES, UnknownNameError
from metafork.comprehensive.systems.inequality_text import InequalityError
from metafork.comprehensive.tree import render
from metafork.comprehensive.tree.schedule_tree import ESTIMATED
from metafork.comprehensive.tree.tree_reading import from_json
from metafork.runtime.machine import PRESETS, MachineError
from tests.sampling import sampled

EXAMPLES = sorted(path.stem for path in Path("examples").glob("*.mf"))
TEXT = """
void f(int N, int B, float a[N]) {
  int dim = N / B;
  meta_schedule cache(a) {
    meta_for (int i = 0; i < dim; i++)
      meta_for (int j = 0; j < B; j++)
        a[i * B + j] = 1.0f;
  }
}
"""


@pytest.mark.parametrize("name", sampled(EXAMPLES, set(EXAMPLES) - {"blur", "heat3d", "jacobi2d", "matmul_tile"}))
@pytest.mark.sampled(3)
def test_every_property_of_every_example(name):
    result = metafork.optimize(f"examples/{name}.mf", machine="all", strategies=["+register_pressure"])
    for tree in result.schedules:
        subject = Subject.of_tree(tree)
        judge = Judge(subject)
        checks = consistent(subject, judge) + disjoint(subject, judge) + covers_start(subject, judge)
        checks.append(height_bound(tree.root, len(tree.strategies), len(tree.counters)))
        for check in checks:
            assert check.verdict is Verdict.YES, check
        for leaf in tree.leaves:
            assert leaf.witness is not None
            assert leaf.kernel == f"{tree.program.name}_leaf{leaf.id}"


def test_a_text_is_as_good_as_a_path(tmp_path):
    path = tmp_path / "input.mf"
    path.write_text(TEXT, encoding="utf-8")
    by_text = metafork.optimize(TEXT, counters=["threads_per_block"], strategies=[], machine="all")
    by_path = metafork.optimize(path, counters=["threads_per_block"], strategies=[], machine="all")
    assert by_text.to_json() == by_path.to_json()
    assert by_text.schedules[0].root.condition == at_most(Polynomial.symbol("B"), Polynomial.symbol("T"))


def test_the_public_names_are_there_and_documented():
    for name in metafork.__all__:
        assert inspect.getdoc(getattr(metafork, name))
    assert set(metafork.__all__) <= set(dir(metafork))
    with pytest.raises(AttributeError, match="no attribute 'optimise'"):
        _ = metafork.optimise


def test_the_order_given_is_the_order_used():
    result = metafork.optimize(
        TEXT, counters=["shared_memory", "threads_per_block"], strategies=["caching"], order="paper"
    )
    assert result.counters == ("shared_memory", "threads_per_block")
    assert result.schedules[0].root.counter == "shared_memory"


def test_assumptions_join_the_start_system():
    plain = metafork.optimize(TEXT, counters=["threads_per_block"], strategies=[], machine={"T": 64})
    assert [[str(c) for c in system] for system in plain.schedules[0].leaves[0].systems] == [["B <= 64"]]
    assumed = metafork.optimize(
        TEXT, counters=["threads_per_block"], strategies=[], machine={"T": 64}, assume=["2*B <= 128", "dim > B/3"]
    )
    [leaf] = assumed.schedules[0].leaves
    assert leaf.systems == ((),)
    assert any("3*dim" in str(c) for c in assumed.schedules[0].start)


def titles(name, **options):
    """Return what the leaves are called; machines whose registers may be few have variants where others have leaves."""
    leaves = metafork.optimize(f"examples/{name}.mf", **options).schedules[0].leaves
    return [leaf.title.removesuffix(", vectors") for leaf in leaves]


def test_leaves_are_for_machines_of_today_unless_all_are_asked_for():
    every = titles("matvec", machine="all")
    assert titles("matvec") == titles("matvec", machine="sm_75..sm_120") == every[:3]
    assert titles("matvec", hardware=Hardware()) == titles("matvec", hardware=replace(NVIDIA, machines="all")) == every
    assert not any("fewer registers" in title for title in every)
    pressed = titles("matvec", machine="all", strategies=["+register_pressure"])
    assert [title for title in pressed if "fewer registers" not in title] == every
    assert titles("matvec", order="paper") == titles(
        "matvec", order="paper", machine="all", strategies=PAPER_STRATEGIES
    )


def test_a_tree_for_a_range_covers_all_that_it_is_for():
    bounded = Subject.of_tree(metafork.optimize("examples/matmul.mf").schedules[0])
    assert all(judged.verdict is Verdict.YES for judged in covers_start(bounded, Judge(bounded)))


@pytest.mark.slow
def test_what_an_estimate_of_registers_leaves_out_is_reported_with_the_estimate():
    """A hundred values live in each of 1,024 threads: no machine has the registers, as estimated."""
    values = range(80)
    loads = "".join(f"float s{k} = x[(i * 1024 + u) * 80 + {k}];" for k in values)
    steps = "".join(f"s{k} = s{k} * t + s{(k + 1) % 80};" for k in values)
    text = f"""void f(int n, int m, const float x[n * 1024 * 80], float y[n * 1024]) {{
        meta_schedule {{
          meta_for (int i = 0; i < n; i++) meta_for (int u = 0; u < 1024; u++) {{
            {loads} float t = s0;
            for (int j = 0; j < m; j++) {{ {steps} t = s3 - t; }}
            y[i * 1024 + u] = {" + ".join(f"s{k}" for k in values)};
          }} }} }}"""
    result = metafork.optimize(text, counters=["registers_per_thread", "registers_per_block"], strategies=["cse1"])
    (tree,) = result.schedules
    assert tree.leaves == ()
    said = [sentence for subject, sentence in tree.notes if subject == ESTIMATED]
    number = re.search(r"the input is not a leaf: its registers_per_block is estimated to be (\d+), and", said[0])
    assert int(number[1]) > 65536
    assert said[0] in result.to_report()
    every = metafork.optimize(text, strategies=["cse1"], machine="all").schedules[0]
    assert every.leaves
    assert not [sentence for subject, sentence in every.notes if subject == ESTIMATED]


def test_machines_in_all_forms():
    forms = ["sm_20", PRESETS["sm_20"], PRESETS["sm_20"].fields(), {"shared_words": 12288}, "Z=12288", {"Z": 12288}]
    for form in forms:
        result = metafork.optimize(
            TEXT, counters=["shared_memory"], strategies=["caching"], machine=form, order="paper"
        )
        assert result.schedules[0].root.condition == at_most(Polynomial.symbol("B"), 12288)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"counters": ["cycles"]}, UnknownNameError, "no counter 'cycles'; known: threads_per_block"),
        ({"counters": ["shared_memroy"]}, UnknownNameError, "did you mean 'shared_memory'"),
        ({"strategies": ["cse3"]}, UnknownNameError, "did you mean 'cse"),
        ({"machine": "sm_81"}, UnknownNameError, "known: sm_20, "),
        ({"machine": "Sm_80"}, UnknownNameError, "did you mean 'sm_80'"),
        ({"machine": "TT=3"}, UnknownNameError, "no machine parameter 'TT'"),
        ({"machine": "T=x"}, MachineError, "neither"),
        ({"assume": ["BB <= 3"]}, UnknownNameError, "did you mean 'B'"),
        ({"assume": ["B"]}, InequalityError, "expected <="),
    ],
)
def test_mistakes_are_told(options, error, message):
    with pytest.raises(error, match=message):
        metafork.optimize(TEXT, **{"counters": ["threads_per_block"], "strategies": [], **options})


def test_a_result_shows_itself():
    result = metafork.optimize(
        "examples/jacobi1d.mf", counters=["shared_memory"], strategies=["granularity", "caching"], order="paper"
    )
    assert "jacobi1d_k0: 3 leaves" in repr(result)
    report = result.to_report()
    for words in ("`2*B + 2 <= Z` and `Z < 2*s*B + 2`", "(3b)(4a)", "cache of a", "joined the grid", "questions to Z3"):
        assert words in report


def test_a_notebook_shows_the_drawing(monkeypatch):
    result = metafork.optimize(TEXT, counters=["threads_per_block"], strategies=[])
    bundle = result._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}  # JupyterLab would take Markdown before an SVG
    (image,) = ElementTree.fromstring(bundle["text/html"])
    kind, _, data = image.attrib["src"].partition(",")
    assert kind == "data:image/svg+xml;base64"  # JupyterLab strips SVG elements where it does not trust the notebook
    drawing = ElementTree.fromstring(b64decode(data))
    assert "leaf 1" in "".join(drawing.itertext())
    assert bundle["text/plain"] == repr(result)

    def no_graphviz(_text, _seconds):
        raise render.NoGraphvizError

    monkeypatch.setattr(render, "svg", no_graphviz)
    assert result._repr_mimebundle_() == {"text/markdown": result.to_report(), "text/plain": repr(result)}


def test_runs_are_equal():
    texts = {metafork.optimize("examples/matmul.mf", strategies=["granularity", "caching"]).to_json() for _ in range(2)}
    assert len(texts) == 1


UNKNOWN_DEGREE = """
void halves(int nb, int B, const float x[nb * B], float out[nb]) {
  meta_schedule {
    meta_for (int i = 0; i < nb; i++) {
      float t[B];
      meta_for (int u = 0; u < B; u++) t[u] = x[i * B + u];
      for (int h = 1; h < B; h = h * 2) {
        meta_for (int v = 0; v < B; v++)
          if (v % (2 * h) == 0 && v + h < B) t[v] = t[v] + t[v + h];
      }
      meta_for (int w = 0; w < 1; w++) out[i] = t[0];
    }
  }
}
"""


@pytest.mark.parametrize("machine", [None, "D=2"])
def test_the_target_of_a_counter_that_is_left_out_is_no_part_of_the_machine(tmp_path, machine):
    chosen = ["shared_memory", "bank_degree"]
    result = metafork.optimize(UNKNOWN_DEGREE, counters=chosen, strategies=["swizzle"], machine=machine)
    (tree,) = result.schedules
    assert [counter.name for counter in tree.counters] == ["shared_memory"]
    assert any(name == "bank_degree" and why.startswith("left out") for name, why in tree.notes)
    assert "D" not in {*tree.machine.values(), *tree.fixed}
    assert all("D" not in constraint.symbols for constraint in tree.start)
    # A dispatcher knows no value for it, and needs none.
    assert any(name.endswith(".cu") for name in rendered_files(result))


def test_the_target_of_a_counter_that_is_kept_is_part_of_the_machine():
    (tree,) = metafork.optimize(TEXT, counters=["bank_degree"], strategies=[]).schedules
    assert [counter.limit for counter in tree.counters] == ["D"]
    assert "D" in tree.machine.values()
    assert any("D" in constraint.symbols for constraint in tree.start)


@pytest.mark.parametrize("machine", ["L=5/2", "L=2.5", {"L": Fraction(5, 2)}])
def test_a_target_of_the_machine_may_be_a_fraction(machine):
    """Its denominator reaches the conditions, and the tree that is read back."""
    text = TEXT.replace("int N,", "int N, int s, const float b[s],").replace("cache(a)", "cache()")
    text = text.replace("a[i * B + j] = 1.0f", "for (int k = 0; k < s; k++) a[i * B + j] = b[k]")
    result = metafork.optimize(text, machine=machine, counters=["global_loads"], strategies=[])
    (tree,) = result.schedules
    assert tree.fixed == {"L": Fraction(5, 2)}
    assert tree.leaves[0].systems == ((at_most(2 * Polynomial.symbol("s"), 5),),)
    assert from_json(json.loads(result.to_json())).schedules[0].fixed == tree.fixed


def test_a_loop_that_never_runs_leaves_the_kernel_with_its_other_work():
    text = """
void f(int n, int B, int a[n])
{
  int d = n / B;
  meta_schedule {
    meta_for (int i = 0; i < d; i++)
      meta_for (int u = 0; u < B; u++) {
        a[i * B + u] = 1;
        for (int k = 0; k < 0; k++)
          a[i * B + u] += k;
      }
  }
}
"""
    [tree] = metafork.optimize(text, counters=["threads_per_block"], strategies=[], machine="all").schedules
    [leaf] = tree.leaves
    assert leaf.systems == ((at_most(Polynomial.symbol("B"), Polynomial.symbol("T")),),)


@pytest.mark.parametrize(
    ("name", "preset"),
    [
        ("a100", "sm_80"),
        ("NVIDIA GeForce RTX 4090", "sm_89"),
        ("H100,Z=100", "sm_90,Z=100"),
        ("T=512,B200", "T=512,sm_100"),
    ],
)
def test_a_gpu_is_its_preset(name, preset):
    assert machine_limits(name) == machine_limits(preset)
