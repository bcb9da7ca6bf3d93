from metafork.analysis.cfg.available import sites_of, with_site_replaced
from metafork.analysis.cfg.source_cfg import build
from metafork.ir.program import Var
from metafork.printing.expressions import expression
from metafork.printing.metafork_text import metafork_text
from tests.metafork.interpreter import program
from tests.metafork.random_code import nest

BODY = "int y; int x = i + 1; x = x * 2; c[x + 3] = x < N && x / 5 ? x % 7 : i - 2; if (x - 4) { c[0] = 1; }"


def all_sites(cfg):
    return [site for number in range(len(cfg.blocks)) for site in sites_of(cfg, number)]


def test_sites_are_all_pure_computations_in_the_order_of_evaluation():
    sites = all_sites(build(program(nest(BODY))))
    assert [(expression(site.expr), site.conditional) for site in sites] == [
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
    for site in all_sites(cfg):
        after = metafork_text(with_site_replaced(cfg, site, Var("N")).program())
        assert after == before.replace(expression(site.expr), "N", 1)
