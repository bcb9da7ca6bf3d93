"""What shells are told when a name is begun."""

import pytest
from click.shell_completion import ShellComplete

from metafork.comprehensive.cli import cli


def completions(*words):
    *given, begun = words
    shell = ShellComplete(cli, {}, "metafork", "_METAFORK_COMPLETE")
    return [one.value for one in shell.get_completions(list(given), begun)]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["optimize", "f.mf", "--strategies", "+thr"], ["+thread_striding"]),
        (["optimize", "f.mf", "--strategies", "caching,reg"], ["caching,register_tile"]),
        (["optimize", "f.mf", "--counters", "+occ"], ["+occupancy"]),
        (["explain", "f.mf", "--strategies", "cse1,til"], ["cse1,tiles"]),
        (["optimize", "f.mf", "--machine", "gfx94"], ["gfx942"]),
        (["select", "f.out", "--machine", "sm_75,sm_12"], ["sm_75,sm_120", "sm_75,sm_121"]),
        (["optimize", "f.mf", "--backend", "open"], ["opencl"]),
        (["optimize", "f.mf", "--machine", "nothing"], []),
        (["opt"], ["optimize"]),
    ],
)
def test_names_are_completed(words, found):
    assert set(found) <= set(completions(*words))
    assert bool(completions(*words)) == bool(found)
