"""Counters and strategies from outside of the tree, and strategies with options."""

import os
import sys

import pytest

from metafork.analysis.analyses import Analyses
from metafork.comprehensive import registry
from metafork.comprehensive.plugins import PluginError, load
from metafork.comprehensive.spelled_options import OptionError, split_names
from metafork.ir.program import Version
from metafork.strategies.granularity import STRATEGY as GRANULARITY
from metafork.strategies.strategy import Applied
from tests.comprehensive.metafork_command import metafork
from tests.metafork.programs import program

STRATEGY = """
from __future__ import annotations

from msgspec.structs import replace

from metafork.strategies.strategy import Applied, NotApplied, Strategy


class Small(Strategy, frozen=True):
    name: str = "small"
    improves: frozenset[str] = frozenset({"threads_per_block"})
    threads: int = 32
    really: bool = True

    def apply(self, version, analyses):
        if version.program.striding is not None or not self.really:
            return NotApplied("no")
        return Applied(replace(version, program=replace(version.program, striding=self.threads)), "small blocks")


STRATEGY = Small()
"""

COUNTER = """
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from metafork.evaluators.counter import CounterValue, Details
from metafork.runtime.machine import OwnLimit
from metafork.algebra.polynomial import Polynomial


@dataclass(frozen=True)
class Made:
    name: str = "{name}"
    kind: str = "{kind}"
    symbol: str = "{symbol}"
    less_is_better: bool = True
    default_target: Fraction | None = {target}
    details: ClassVar[Details] = Details({details})

    def evaluate(self, version, analyses):
        return CounterValue(Polynomial.symbol("B") * 3)


COUNTER = Made()
"""

TEXT = """
void f(int n, int B, float a[n * B]) {
  meta_schedule {
    meta_for (int i = 0; i < n; i++)
      meta_for (int j = 0; j < B; j++)
        a[i * B + j] = 2 * a[i * B + j];
  }
}
"""


def counter(name="made", kind="resource", symbol="MADE", target="None", details="limit=OwnLimit(7)"):
    return COUNTER.format(name=name, kind=kind, symbol=symbol, target=target, details=details)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "f.mf").write_text(TEXT)
    (tmp_path / "small.py").write_text(STRATEGY)
    (tmp_path / "made.py").write_text(counter())
    return tmp_path


def test_a_file_and_a_module_are_plugins(folder, tmp_path_factory):
    modules = tmp_path_factory.mktemp("modules")
    (modules / "made_elsewhere.py").write_text(counter())
    environment = {**os.environ, "PYTHONPATH": str(modules)}
    plugins = ["--plugin", "small.py", "--plugin", "made_elsewhere"]
    names = ["--counters", "+made", "--strategies", "small{threads=16, really=true}", "--machine", "all"]
    done = metafork("optimize", "f.mf", *plugins, *names, cwd=folder, env=environment)
    assert "(small{threads=16})\n" in done.stdout
    assert "3*B <= MADE" in done.stdout
    assert '"schedule"' not in (folder / "f.out" / "f.tree.json").read_text()  # the plugin does not say its directives
    assert "leaf 1" in metafork("select", "f.out", "--machine", "sm_90", "n=4", "B=2", cwd=folder).stdout
    outside = metafork("select", "f.out", "--machine", "sm_90", "n=4", "B=3", cwd=folder).stdout
    assert "3*B <= MADE does not hold: 9 > 7" in outside


def test_an_installed_package_brings_its_names(folder, tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    (site / "made_package.py").write_text(STRATEGY + counter())
    (site / "made_package-1.0.dist-info").mkdir()
    (site / "made_package-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: made-package\nVersion: 1.0\n"
    )
    (site / "made_package-1.0.dist-info" / "entry_points.txt").write_text("[metafork.plugins]\nmade = made_package\n")
    environment = {**os.environ, "PYTHONPATH": str(site)}
    names = ["--counters", "+made", "--strategies", "+small", "--machine", "all"]
    assert "3*B <= MADE" in metafork("optimize", "f.mf", *names, cwd=folder, env=environment).stdout
    done = metafork("optimize", "f.mf", "--counters", "+mad", cwd=folder, env=environment, status=2)
    assert "there is no counter 'mad'\n  did you mean: made?" in done.stderr


@pytest.mark.slow
def test_verify_takes_plugins_too(folder):
    arguments = ["--plugin", "small.py", "--strategies", "small", "--counters", "threads_per_block"]
    arguments += ["--machine", "all"]
    done = metafork("verify", "f.mf", *arguments, "--points", "3", "--no-races", "--registers", "none", cwd=folder)
    assert "f.mf: verified" in done.stdout
    assert "f_k0 2" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "has none of COUNTER, COUNTERS, STRATEGY, STRATEGIES"),
        ("import nothing_of_that_name", "cannot be imported: ModuleNotFoundError"),
        ("this is no Python", "cannot be imported: SyntaxError"),
        ("1 / 0", "cannot be imported: ZeroDivisionError"),
        ("STRATEGY = 3", "3 is no strategy: it does not extend metafork.strategies.strategy.Strategy"),
        (
            STRATEGY.replace("(Strategy, frozen=True)", ""),
            "is no strategy: it does not extend metafork.strategies.strategy.Strategy",
        ),
        (counter(details="'threads'"), "'made' is limited by 'MADE', which no machine has"),
        (counter(symbol="T"), "which every machine has"),
        (counter(symbol="2x"), "which is no name"),
        (counter(details="limit=OwnLimit(-1)"), "a limit is an integer from 0 to 2\\^62, not -1"),
        (counter(details="limit=OwnLimit(1, {'sm_81': 3})"), "there is no preset 'sm_81'"),
        (counter(kind="performance", target="Fraction(1)"), "target of a performance counter has a symbol"),
    ],
)
def test_a_module_that_is_no_plugin_is_told_why(tmp_path, text, message):
    (tmp_path / "wrong.py").write_text(text)
    with pytest.raises(PluginError, match=message):
        load(str(tmp_path / "wrong.py"))


def test_wrong_plugins_are_mistakes_of_the_user(folder):
    for plugin in ("nowhere.py", "no_module_of_that_name", "../f.mf", ".."):
        assert "plugin" in metafork("optimize", "f.mf", "--plugin", plugin, cwd=folder, status=2).stderr


def test_a_name_belongs_to_one_plugin_only(tmp_path):
    for name in ("shared_memory", "made"):
        (tmp_path / f"{name}.py").write_text(counter(name))
    (tmp_path / "again.py").write_text(counter("made"))
    made, again, shared = (load(str(tmp_path / f"{name}.py")) for name in ("made", "again", "shared_memory"))
    assert [one.name for one in registry.counters(["+made"], [made])][-1] == "made"
    with pytest.raises(PluginError, match="has a counter 'made', and so has"):
        registry.counters(["made"], [made, again])
    with pytest.raises(PluginError, match="has a counter 'shared_memory', and so has metafork itself"):
        registry.counters(["threads_per_block"], [shared])


@pytest.mark.parametrize(
    ("spelled", "message"),
    [
        ("granularity{most_loop=1}", "granularity has no option 'most_loop'; its options are most_loops .by default 8"),
        ("granularity{most_loops}", "an option without a value: 'most_loops'"),
        ("granularity{most_loops=x}", "'x' is no integer of at most 18 digits; its options are most_loops"),
        ("granularity{most_loops=" + 5000 * "9" + "}", "is no integer of at most 18 digits"),
        ("granularity{most_loops=0}", "most_loops is at least 1, not 0; its options are most_loops"),
        ("granularity{most_loops=1,most_loops=2}", "granularity is given most_loops twice"),
        ("granularity{name=x}", "has no option 'name'"),
        ("caching{x=1}", "caching has no option 'x'; it has no options"),
        ("cse1{level=2}", "cse1 has no option 'level'; it has no options"),
        ("granularity{most_loops=1", "is neither NAME nor NAME{OPTION=VALUE,...}"),
        ("granularity}{", "is neither NAME nor NAME{OPTION=VALUE,...}"),
    ],
)
def test_wrong_options_list_the_right_ones(spelled, message):
    with pytest.raises(OptionError, match=message):
        registry.strategies([spelled])


def test_wrong_options_are_mistakes_of_the_user(folder):
    done = metafork("optimize", "f.mf", "--strategies", "granularity{most=1}", cwd=folder, status=2)
    assert "its options are most_loops (by default 8)" in done.stderr
    done = metafork("optimize", "f.mf", "--counters", "shared_memory{a=1}", cwd=folder, status=2)
    assert "counter shared_memory has no options" in done.stderr


def test_an_option_changes_what_a_strategy_does():
    twice = Version(
        program(
            """
            void f(int n, int s, int t, int B, float a[n * s * t * B]) {
              meta_schedule {
                meta_for (int i = 0; i < n; i++)
                  meta_for (int u = 0; u < B; u++)
                    for (int j = 0; j < s; j++)
                      for (int k = 0; k < t; k++)
                        a[((i * s + j) * t + k) * B + u] = 1;
              }
            }
            """
        )
    )
    (one,) = registry.strategies(["granularity{most_loops=1}"])
    assert one.name == "granularity{most_loops=1}"
    once, all_ = one.apply(twice, Analyses()), GRANULARITY.apply(twice, Analyses())
    assert isinstance(once, Applied)
    assert isinstance(all_, Applied)
    assert once.version != all_.version
    assert once.note.count("joined the grid") == 1
    assert all_.note.count("joined the grid") == 2


def test_names_are_split_outside_of_braces_only():
    assert split_names("cse1, granularity{a=1,b=2},+x{c=3}") == ["cse1", "granularity{a=1,b=2}", "+x{c=3}"]
    (added,) = [s for s in registry.strategies(["+granularity{most_loops=2}"]) if s.name.startswith("granularity{")]
    assert (added.name, added.most_loops) == ("granularity{most_loops=2}", 2)
    assert registry.strategies(["granularity{most_loops=8}"]) == (GRANULARITY,)
    with pytest.raises(OptionError, match="named twice, with different options"):
        registry.strategies(["granularity{most_loops=2}", "granularity{most_loops=3}"])


def test_a_plugin_is_imported_once(folder):
    assert load(str(folder / "small.py")).strategies[0] is load(str(folder / "small.py")).strategies[0]
    assert any(name.startswith("metafork_plugin_") for name in sys.modules)
