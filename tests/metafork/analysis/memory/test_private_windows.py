import pytest

from metafork.algebra.polynomial import Polynomial
from metafork.analysis.memory.block_memory import block_memory
from metafork.strategies.caching import with_cached_arrays
from tests.metafork.kernel_runs import Case, run
from tests.metafork.programs import MATMUL, program

i, B = Polynomial.symbol("i"), Polynomial.symbol("B")
x = Polynomial.symbol("threadIdx.x")


TEXT = """
void f(int n, int B, int m, const float a[4 * n], float c[4 * n]) {{
  int dim = n / B;
  meta_schedule cache() {{
    meta_for (int i = 0; i < dim; i++) {{
      {before}
      {loop}
        meta_for (int j = 0; j < B; j++) {{
          {body}
        }}
      {after}
    }}
  }}
}}"""


def private(before="", body="c[i * B + j] += a[k * B + j];", after="", loop="for (int k = 0; k < n / B; k++)"):
    text = TEXT.format(before=before, loop=loop, body=body, after=after)
    (plan,) = block_memory(program(text)).paths
    return plan.private


def thread(code):
    return f"meta_for (int u = 0; u < B; u++) {{ {code} }}"


def test_one_element_a_thread():
    (window,) = private()
    assert (window.array.name, window.count, window.bases) == ("c", 1, (i * B + x,))
    assert window.loaded


def test_matmul_keeps_c_where_its_extent_is_a_constant():
    (plan,) = block_memory(program(MATMUL)).paths
    assert plan.private == ()
    reduced = MATMUL.replace("w < s", "w < 2").replace("ub1 * s", "ub1 * 2").replace("int s,", "")
    (plan,) = block_memory(program(reduced)).paths
    assert [(window.array.name, window.count) for window in plan.private] == [("c", 2)]


def test_a_first_write_saves_the_load():
    (window,) = private(before=thread("c[i * B + u] = 0.0f;"))
    assert window.certain
    assert not window.loaded
    (window,) = private(before=thread("if (u > 2) c[i * B + u] = 0.0f;"))
    assert window.loaded


def test_a_write_under_a_condition_is_not_certain():
    (window,) = private(body="if (a[k] > 0.0f) c[i * B + j] += 1.0f;")
    assert not window.certain


@pytest.mark.parametrize(
    "changes",
    [
        {"loop": "", "body": "c[i * B + j] += a[j];"},  # no block-level loop
        {"after": thread("c[i * B + u] += c[i * B + (u + 1) % B];")},  # an index of unknown form
        {"after": thread("c[i * B + u] += c[i * B + B - 1 - u];")},  # the neighbour's element
        {"after": thread("c[i * B] += 1.0f;")},  # threads share an element
        {"body": "c[i * B + j + k] += 1.0f;"},  # moves with the loop
        {"body": "c[(i * B + j) / 2] += 1.0f;"},
        {"body": "for (int w = 0; w < m; w++) c[(i * m + w) * B + j] += 1.0f;"},  # as many as m
        {"body": "for (int w = 0; w < 20; w++) c[(i * 20 + w) * B + j] += 1.0f;"},  # too many
        {"body": "for (int w = 0; w < 2; w++) if (a[w] > 0.0f) c[(i * 2 + w) * B + j] += 1.0f;"},  # perhaps, of several
    ],
)
def test_what_is_not_a_threads_own_stays_in_global_memory(changes):
    assert private(**changes) == ()


SEVERAL = "for (int w = 0; w < 3; w++) c[(i * 3 + w) * B + j] += a[k];"


def test_several_elements_where_the_loop_around_may_not_run():
    """All of a thread's elements are written, or none: what decides are loops alike for all of them."""
    (window,) = private(loop="for (int k = 0; k < m; k++)", body=SEVERAL)
    assert (window.count, window.certain, window.loaded) == (3, False, True)
    inner = SEVERAL.replace("c[", "for (int z = 0; z < m; z++) c[")
    assert [window.count for window in private(body=inner)] == [3]
    some = SEVERAL.replace("c[", "for (int z = 0; z < w; z++) c[")
    assert private(body=some) == ()


REASONS = {
    "for (int w = 0; w < m; w++) c[(i * m + w) * B + j] += 1.0f;": "the loop over w, which has no constant length",
    "for (int w = 0; w < 20; w++) c[(i * 20 + w) * B + j] += 1.0f;": "20 elements of it are more than the 16",
    "for (int w = 0; w < 2; w++) if (a[w] > 0.0f) c[(i * 2 + w) * B + j] += 1.0f;": "a condition decides which",
}


@pytest.mark.parametrize("body", REASONS)
def test_why_elements_have_no_registers_is_said(body):
    text = TEXT.format(before="", loop="for (int k = 0; k < n / B; k++)", body=body, after="")
    (remark,) = [one for one in with_cached_arrays(program(text.replace(" cache()", ""))).remarks if one.subject == "c"]
    assert not remark.taken
    assert REASONS[body] in remark.reason


def test_elements_whose_loop_may_not_run_come_back_as_they_are_left(tmp_path):
    text = """
void several(int n, int B, int m, int p, const float a[n + m], float c[n]) {
  int dim = n / (3 * B);
  meta_schedule cache() {
    meta_for (int i = 0; i < dim; i++)
      for (int k = 0; k < m / B; k++)
        meta_for (int j = 0; j < B; j++)
          for (int z = 0; z < p - 1; z++)
            for (int w = 0; w < 3; w++)
              c[(i * 3 + w) * B + j] += a[k + z];
  }
}"""
    case = Case(text, [{"n": n, "B": 3, "m": m, "p": p} for n in (9, 20) for m in (1, 2, 3, 7) for p in (1, 2, 4)])
    assert [window.count for path in block_memory(case.lowered_program()).paths for window in path.private] == [3]
    assert run([case], tmp_path) == {}


def test_arrays_that_are_only_read_are_not_private():
    assert [window.array.name for window in private()] == ["c"]


def test_threads_that_a_condition_leaves_out_load_nothing_of_another_block():
    idle = "meta_for (int u = 0; u < B + 2; u++) if (u < B) c[i * B + u] += a[i * B + u];"
    text = """
void f(int n, int B, const float a[n], float c[n]) {
  int dim = n / B;
  meta_schedule { meta_for (int i = 0; i < dim; i++) for (int k = 0; k < 3; k++) LOOP }
}"""
    (plan,) = block_memory(program(text.replace("LOOP", idle))).paths
    assert plan.private == ()
    (plan,) = block_memory(program(text.replace("LOOP", idle.replace("B + 2", "B")))).paths
    assert [window.certain for window in plan.private] == [False]
