"""Sums up to each place that one warp takes: which loops are such scans, and that they compute what they did."""

import pytest

from metafork.frontend import parse
from metafork.ir import program as ir
from metafork.ir.kernel import SHUFFLE, without_warps
from metafork.ir.marks import with_results
from metafork.ir.messages.source import Source
from metafork.lowering.lowering import lower
from tests.metafork.kernel_runs import Case, run

SCANS = """
void {name}(int n, int B, const {type} x[n][B], {type} y[n][B], {type} z[n][B])
{{
  meta_schedule {{
    meta_for (int i = 0; i < n; i++) {{
      {type} s[{extents}], t[B];
      int now = 0, old = 1;
      meta_for (int u = 0; u < B; u++) {{
        s{own} = x[i][u];
        t[u] = u;
      }}
      for (int reach = 1; {loop}) {{
        {step}
      }}
      meta_for (int u = 0; u < B; u++) {{
        y[i][u] = s{own};
        z[i][u] = t[u];
      }}
    }}
  }}
}}
"""
ALL = "meta_for (int u = 0; u < B; u++) "
DOUBLED = "reach < B; reach *= 2"
COPIED = ALL + "s[u] = t[u];"
SUMS = ALL + "t[u] = u < reach ? s[u] : s[u] + s[u - reach];" + COPIED


def text(name, step, extents="B", own="[u]", type_="float", loop=DOUBLED):
    return SCANS.format(name=name, step=step, extents=extents, own=own, type=type_, loop=loop)


def halves(name, step, **others):
    return text(name, step, "2][B", "[now][u]", **others)


FORMS = {
    "arrays": text("arrays", SUMS),
    "halves": halves(
        "halves", ALL + "s[1 - now][u] = u >= reach ? s[now][u] + s[now][u - reach] : s[now][u]; now = 1 - now;"
    ),
    "branches": halves(
        "branches",
        ALL + "if (reach > u) s[1 - now][u] = s[now][u]; else s[1 - now][u] = s[now][u - reach] * 3 + s[now][u];"
        "now = 1 - now;",
        type_="int",
        loop="reach < B; reach = reach + reach",
    ),
    "two_counts": halves(
        "two_counts",
        "now = 1 - now; old = 1 - now;"
        + ALL
        + "{ float sum = s[old][u]; if (u > reach - 1) sum += s[old][u - reach]; s[now][u] = sum; }",
        loop="reach < B; reach <<= 1",
    ),
    "in_place": text(
        "in_place",
        ALL + "t[u] = u - reach >= 0 ? s[u - reach] : 0;" + ALL + "if (u >= reach) s[u] += t[u];",
        type_="double",
    ),
    "greatest": text(
        "greatest",
        ALL + "{ t[u] = s[u]; if (u >= reach && s[u - reach] > s[u]) t[u] = s[u - reach] - u * reach; }" + COPIED,
        type_="int",
    ),
    "both": text(  # what is added up is that of other places, before and behind the barrier
        "both",
        ALL
        + "if (u >= reach) t[u] = s[u - reach]; else t[u] = 1;"
        + ALL
        + "if (u >= reach) s[u] += t[u - reach]; else s[u] -= t[u];",
        type_="unsigned int",
    ),
}
OTHERS = {
    "downwards": text("k", ALL + "t[u] = u + reach >= B ? s[u] : s[u] + s[u + reach];" + COPIED),
    "from two": text("k", SUMS).replace("int reach = 1", "int reach = 2"),
    "by threes": text("k", SUMS, loop="reach < B; reach *= 3"),
    "too far": text("k", SUMS, loop="reach < B / 2; reach *= 2"),
    "another place": text("k", ALL + "t[u] = u < reach ? s[u] : s[u] + s[u - reach + (reach > 1)];" + COPIED),
    "each place": text("k", ALL + "t[u] = s[u] + s[(u + B - reach) % B];" + COPIED),
    "fewer places": text("k", ALL + "t[u] = u < 2 * reach ? s[u] : s[u] + s[u - 2 * reach];" + COPIED),
    "what memory says": text("k", ALL + "t[u] = u < reach ? s[u] : s[u] + s[u - reach] * x[i][u];" + COPIED),
    "halves that may overlap": halves(
        "k",
        ALL + "s[0][now + u] = u < reach ? s[0][u] : s[0][u] + s[0][u - reach];",
    ),
    "a count that is read": halves(
        "k",
        ALL + "s[1 - now][u] = u < reach ? s[now][u] : s[now][u] + s[now][u - reach] * now; now = 1 - now;",
    ),
    "halves that are not swapped": halves(
        "k", ALL + "s[1 - now][u] = u < reach ? s[now][u] : s[now][u] + s[now][u - reach]; now = now + 2;"
    ),
    "no sum": text("k", ALL + "s[u] += t[u];"),
}


def kernel(source, results=1):
    return lower(with_results(parse(Source("case.mf", source)).schedules[0].program, {0: results}), "k")


def shuffles(body):
    return sum(isinstance(part, ir.Call) and part.name == SHUFFLE for part in ir.parts_of(body))


OWN = {"arrays", "in_place", "greatest"}
"""Forms in which a thread with one place has an element across barriers as a scalar of its own."""


@pytest.mark.parametrize(
    ("name", "results"), [(name, count) for name in FORMS for count in (1, 2, 4) if count > 1 or name not in OWN]
)
def test_one_warp_takes_the_steps_of_a_scan(name, results):
    """Of 1, 2, 4 or 8 times 32 places, each of five steps."""
    body = kernel(FORMS[name], results).body
    of_each = 2 if name == "both" else 1
    assert shuffles(body) == of_each * 5 * (1 + 2 + 4 + 8)
    assert shuffles(without_warps(body)) == 0


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_scan_stays_as_it_is(name):
    assert shuffles(kernel(OTHERS[name], 4).body) == 0


def test_blocks_of_one_size_have_no_code_for_others():
    def literal(size):
        return FORMS["halves"].replace("int n, int B", "int n").replace("B", str(size))

    assert shuffles(kernel(literal(128)).body) == 5 * 4
    assert shuffles(kernel(literal(96)).body) == shuffles(kernel(literal(512)).body) == 0


def test_scans_compute_what_the_program_means(tmp_path):
    """In blocks that one warp takes and in others, by threads of one place or four."""
    cases = []
    for name, source in FORMS.items():
        program = parse(Source("case.mf", source)).schedules[0].program
        points = [{"n": 2, "B": places} for places in (1, 16, 32, 64, 96, 128, 200, 256, 512)]
        several = {count: with_results(program, {0: count}) for count in (1, 4)}
        cases += [Case(source, points, program=one, label=f"{name}, {count}") for count, one in several.items()]
    assert run(cases, tmp_path) == {}
