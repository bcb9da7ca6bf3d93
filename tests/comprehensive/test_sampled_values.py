"""A value that was tried at some shapes only is called sampled wherever it is shown; a proved one is not."""

import json

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive.tree import tree_json, tree_reading
from metafork.evaluators.bank_degree import COUNTER
from metafork.ir.program import Version
from tests.comprehensive.metafork_command import metafork
from tests.metafork.programs import JACOBI, TRANSPOSE, program

OPTIONS = ("--counters", "shared_memory,bank_degree", "--strategies", "granularity,caching", "--order", "paper")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampled")
    for name, text in (("transpose", TRANSPOSE), ("jacobi", JACOBI)):
        (folder / f"{name}.mf").write_text(text)
        metafork("optimize", f"{name}.mf", *OPTIONS, cwd=folder)
    return folder


def test_a_degree_is_sampled_unless_it_is_proved_of_every_shape():
    transposed, jacobi = (COUNTER.evaluate(Version(program(text)), Analyses()) for text in (TRANSPOSE, JACOBI))
    assert "8, 16, 32, 64" in transposed.sampled
    assert jacobi.sampled == ""


@pytest.mark.slow
def test_json_report_drawing_and_selection_say_so(out):
    folder = out / "transpose.out"
    text = (folder / "transpose.tree.json").read_text()
    (schedule,) = json.loads(text)["schedules"]
    variants = [leaf["variants"][-1] for leaf in schedule["leaves"]]
    assert any("sampled" in one for one in variants)
    for one in variants:
        sampled = one.get("sampled", {})
        assert ("bank_degree" in sampled) == (one["counters"]["bank_degree"] not in ("0", "1"))
        assert "shared_memory" not in sampled
    assert "(sampled: the largest found where blocks extend to 8, 16, 32, 64;" in (folder / "report.md").read_text()
    assert "bank_degree (sampled)</i>" in (folder / "transpose.tree.dot").read_text()
    assert "shared_memory (sampled)</i>" not in (folder / "transpose.tree.dot").read_text()
    assert "(sampled)" in (folder / "transpose.tree.svg").read_text()
    read = tree_reading.load(folder / "transpose.tree.json")
    assert tree_json.dumps(read) == text
    point = ["N=256", "s=1", "B0=16", "B1=16"]
    done = metafork("select", folder, "--machine", "sm_80,D=32", *point)
    assert f"bank_degree = {variants[0]['counters']['bank_degree']} (sampled: the largest found" in done.stdout
    given = json.loads(metafork("select", folder, "--machine", "sm_80,D=32", "--json", *point).stdout)
    assert list(given["schedules"][0]["sampled"]) == ["bank_degree"]


def test_what_is_proved_is_not_called_sampled(out):
    folder = out / "jacobi.out"
    for name in ("jacobi.tree.json", "report.md", "jacobi.tree.dot", "jacobi.tree.svg"):
        assert "sampled" not in (folder / name).read_text()
