from metafork.analysis.cfg.available import evaluating, sites_of, with_evaluating, with_site_replaced
from metafork.analysis.cfg.source_cfg import build
from metafork.ir.program import Var
from metafork.printing.expressions import expression
from metafork.printing.metafork_text import metafork_text
from tests.metafork.interpreter import program
from tests.metafork.random_code import nest

BODY = "int y; int x = i + 1; x = x * 2; c[x + 3] = x < N && x / 5 ? x % 7 : i - 2; if (x - 4) { c[0] = 1; }"


def all_sites(cfg):
    """Yield the sites of a program, each with its block and its place there."""
    for number, block in enumerate(cfg.blocks):
        for place, stmt in enumerate(evaluating(block)):
            for site in sites_of(stmt):
                yield number, place, site


def test_sites_are_all_pure_computations_in_the_order_of_evaluation():
    sites = all_sites(build(program(nest(BODY))))
    assert [(expression(site.expr), site.conditional) for _, _, site in sites] == [
        ("i + 1", False),
        ("x * 2", False),
        ("x + 3", False),
        ("x < N && x / 5 ? x % 7 : i - 2", False),
        ("x < N && x / 5", False),
        ("x < N", False),
        ("x / 5", True),
        ("x % 7", True),
        ("i - 2", True),
        ("x - 4", False),
    ]


def test_a_replaced_site_changes_nothing_else():
    cfg = build(program(nest(BODY)))
    before = metafork_text(cfg.program())
    for number, place, site in all_sites(cfg):
        block = cfg.blocks[number]
        lines = list(evaluating(block))
        lines[place] = with_site_replaced(lines[place], site, Var("N"))
        after = metafork_text(cfg.with_block(number, with_evaluating(block, lines)).program())
        assert after == before.replace(expression(site.expr), "N", 1)
