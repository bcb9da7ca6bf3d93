import json
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from itertools import islice

import pytest

from metafork.swizzle.output.cost import ARCHITECTURES, cost
from metafork.swizzle.output.instructions import Load, NotLowerableError, Select, Shuffle
from metafork.swizzle.output.lowering import lower
from metafork.swizzle.output.picture import draw
from metafork.swizzle.output.print_cuda import print_cuda
from metafork.swizzle.output.print_json import print_json
from metafork.swizzle.output.ranking import rank
from metafork.swizzle.search.search import Search, solutions
from tests.metafork.swizzle.running import problem_of


def codes(name, **constants):
    problem = problem_of(name, **constants)
    return problem, [lower(problem, one) for one in solutions(problem)]


def count(code, kind):
    return sum(isinstance(one, kind) for one in code.instructions)


def test_a_transposition_needs_one_shuffle_a_register_and_a_barrel():
    problem = problem_of("crc", s=7)
    for solution in solutions(problem):
        code = lower(problem, solution, registers=True)
        assert count(code, Shuffle) == 7
        # Barrel rotation: three steps of seven selects, instead of six selects for each of seven registers.
        assert count(code, Select) <= 2 * 21


def test_registers_are_never_indexed_dynamically():
    text = print_cuda(codes("stencil1d", k=5)[1])
    assert "__shfl_sync(0xffffffffu, v" in text
    assert "v[" not in text


def test_cost_counts_the_code_and_orders_solutions():
    problem = problem_of("crc", s=4)
    found = solutions(problem)
    ranked = rank(problem, found)
    assert len(ranked) == len(found)
    totals = [one.cost.total for one in ranked]
    assert totals == sorted(totals)
    assert totals[0] < totals[-1]
    best = ranked[0]
    assert best.cost.shuffles == count(best.code, Shuffle)
    assert best.cost.selects == count(best.code, Select)
    slow, fast = (cost(problem, best.solution, best.code, ARCHITECTURES[name]) for name in ("sm_35", "sm_70"))
    assert slow.total - fast.total >= 4 * best.cost.shuffles, "shuffles are dearer on the older machine"


def test_bank_degree_is_simulated_for_arrays_in_shared_memory():
    problem = problem_of("polynomial_shared")
    ranked = rank(problem, list(islice(Search(problem), 2)))
    loads = [one for one in ranked[0].code.instructions if isinstance(one, Load)]
    # Eight groups of four threads, 16 words apart: their copies of one word stand in two banks, four words each.
    assert ranked[0].cost.bank_degree >= 4
    assert ranked[0].cost.shared_cycles >= len(loads)


def test_json_has_a_version_and_instructions():
    problem = problem_of("conv1d")
    search = Search(problem)
    ranked = rank(problem, list(search))
    document = json.loads(
        print_json(problem, [(one.solution, one.code, one.cost) for one in ranked], search.statistics)
    )
    assert (document["format"], document["version"]) == ("metafork-swizzle", 1)
    (solution,) = document["solutions"]
    assert solution["holes"]["received"]["expression"] == "(i + k) % 32"
    operations = [one["op"] for one in solution["code"]["instructions"]]
    assert operations.count("shuffle") == solution["cost"]["shuffles"] == 2
    assert operations.count("*") == 3


def test_sixty_four_threads_are_no_warp():
    problem = problem_of("crc", s=3, n=64)
    found = solutions(problem)
    assert found
    with pytest.raises(NotLowerableError, match="64 threads do not fit"):
        print_cuda([lower(problem, found[0])])


def test_vector_registers_are_no_threads():
    problem = problem_of("hvx_gaussian")
    with pytest.raises(NotLowerableError, match="table of terms"):
        lower(problem, solutions(problem, limit=1)[0])


@pytest.mark.parametrize("name", ["crc", "stencil2d", "hvx_gaussian", "polynomial"])
def test_pictures_are_svg_with_every_stage(name):
    problem = problem_of(name)
    text = draw(problem, solutions(problem, limit=1)[0])
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    titles = [one.text for one in root.iter() if one.get("class") == "title"]
    for hole in problem.holes():
        if "." not in hole.name:
            assert any(title.startswith(f"{hole.name}:") for title in titles)
    assert sum(one.tag.endswith("line") for one in root.iter()) > 0


FIGURES = (
    ("stencil1d", {}),
    ("conv1d", {}),
    ("stencil2d", {}),
    ("conv2d", {}),
    ("finite_field", {}),
    ("mult64", {"level": 1}),
    ("sum", {"s": 7}),
    ("crc", {"s": 5}),
    ("rcr", {"s": 5}),
    ("polynomial_shared", {}),
)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed: the CUDA text is not compiled by it")
@pytest.mark.slow
def test_nvcc_accepts_the_kernels(tmp_path):
    """Those of Swizzle Inventor's Figures 10 to 13 are among them."""
    text = ""
    for name, constants in FIGURES:
        problem = problem_of(name, **constants)
        element = "unsigned" if name == "finite_field" else "float"
        code = lower(problem, solutions(problem, limit=1)[0])
        pointers = ", ".join(f"const {element} *{one.name}" for one in code.inputs)
        passed = "".join(f"{one.name}, " for one in code.inputs)
        body = print_cuda([code])
        text += body if not text else body.split("#endif\n", 1)[1]
        launch = f"{code.name}<{element}><<<3, 96, 4096>>>({passed}out, 5);"
        text += f"\nvoid launch_{name}({pointers}, {element} *out) {{ {launch} }}\n"
    path = tmp_path / "kernels.cu"
    path.write_text(text)
    command = ["nvcc", "-arch=sm_80", "-c", "-o", str(tmp_path / "kernels.o"), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
