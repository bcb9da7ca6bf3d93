"""Copies on the device and which side is newer: whatever is read was written last, with little memory as with much.

Copies and kernels take effect as late as is legal, or in a random legal order (``late_streams.h``): where a wait is
missing, bytes are wrong.
"""

import os
from itertools import product
from pathlib import Path

import pytest

from tests.runtime.compiling import SANITIZE, build, planted, run

HARNESS = Path(__file__).with_name("residents.cu")


@pytest.fixture(scope="module")
def harness(tmp_path_factory):
    return build(tmp_path_factory.mktemp("residents") / "residents", [HARNESS], "-O0", f"-I{HARNESS.parent}", *SANITIZE)


@pytest.mark.parametrize("memory", [(), (3,), (1,), (0,), (4, 150)])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_read_was_written_last(harness, seed, memory):
    orders = [{"STANDIN_ORDER": f"random:{seed}"}, {"STANDIN_ORDER": "late"}, {"STANDIN_ORDER": "late", "PINNED": "2"}]
    orders += [{"STANDIN_ORDER": "early"}, {"PINNED": "0"}, {"METAFORK_ASYNC": "0"}]
    done = run([harness, seed, *memory], env={**os.environ, **orders[(seed + 2 * len(memory)) % len(orders)]})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


FAULTS = {
    "a kernel does not wait for its arrays": ("residents.h", "&one->streams->copies, «one->sent»", "0"),
    "a copy to the device does not wait for kernels": ("residents.h", "to_device ? «one->used»", "0"),
    "a copy from the device does not wait for kernels": ("residents.h", " : «one->wrote»)", "0"),
    "the host does not wait for its bytes": ("streams.h", "copies, «one->number»)", "0"),
    "a buffer is used anew too early": ("streams.h", "copies, «one->last»)", "0"),
    "a buffer is used anew before its bytes were handed on": ("streams.h", "number <= «one->last»", "0"),
    "memory is freed before kernels are over": ("residents.h", "kernels, «one->used»)", "0"),
    "memory is freed before copies are over": ("residents.h", "&streams->copies, «one->sent»)", "0"),
    "a kernel that writes is not noted": ("residents.h", "one->wrote = «one->used»", "0"),
    "a kernel is not noted": ("residents.h", "one->used = «streams->kernels.begun + 1»", "0"),
    "a copy is not noted": ("residents.h", "one->sent = «streams->copies.begun»", "0"),
    "an event stands at another place": ("streams.h", "handle, &one->events[«number» %", "number + 1"),
    "others' bytes between two stretches come back": (
        "residents.h",
        "more = «to_device || one->before || one->borrowed»",
        "true",
    ),
    "what the device did not write comes back": ("streams.h", "if («one->before == NULL») metafork_pack", "true"),
    "what others wrote is taken for what was sent": ("residents.h", "if («one->fresh») {", "true"),
}
"""Waits that are left out, and what is lost: header, what is replaced (between « and »), and by what."""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """The harness with all faults, of which each is there where its number is asked for."""
    return planted(tmp_path_factory.mktemp("faulty"), HARNESS, FAULTS.values())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_missing_wait_is_seen(fault, faulty):
    number = list(FAULTS).index(fault) + 1
    for order, memory, seed in product(("late", "random:1", "random:2"), ((), (4, 150), (3,)), range(4)):
        done = run([faulty, seed, *memory], env={**os.environ, "STANDIN_ORDER": order, "PLANTED": str(number)})
        if done.returncode != 0:
            return
    pytest.fail(f"nothing is wrong without it: {fault}")


def test_no_wait_is_missing(faulty):
    for order, memory in product(("late", "random:1", "random:2"), ((), (4, 150))):
        done = run([faulty, 1, *memory], env={**os.environ, "STANDIN_ORDER": order, "PLANTED": "0"})
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_threads_have_streams_of_their_own(tmp_path):
    """Those that find none are right as well, and what was taken is given back, also for other devices."""
    source = HARNESS.with_name("streams_of_threads.cu")
    flags = ("-O0", "-g", "-fsanitize=thread", f"-I{HARNESS.parent}", "-pthread")
    program = build(tmp_path / "threads", [source], *flags)
    for order in ("late", "random:1"):
        done = run([program], env={**os.environ, "STANDIN_ORDER": order})
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
