"""Arrays of the caller's on the device: in order with its own work on its streams, and with what the host touches."""

import os
from itertools import product
from pathlib import Path

import pytest

from tests.runtime.compiling import SANITIZE, build, planted, run

HARNESS = Path(__file__).with_name("borrowed.cu")
ORDERS = ("late", "random:1", "random:2", "early")
FAULTS = {
    "kernels of two streams have no order": ("borrowed.h", "&& «kernels->done < kernels->begun» &&", "false"),
    "streams of arrays are not waited for": ("residents.h", "error = «stream == other» ?", "true"),
    "copies do not wait for the caller": ("borrowed.h", "!= NULL ? «streams->kernels.begun» :", "0"),
    "the caller does not wait for copies": ("borrowed.h", "&one->streams->copies, «one->sent»)", "0"),
    "what the host had to have goes back early": ("residents.h", "streams->kernels, «one->used»)", "0"),
    "an array that is lent is freed": ("residents.h", "metafork_unused(one) && «!one->borrowed»", "true"),
}
"""What is left out, and what is lost: header, what is replaced (between « and »), and by what."""


def ended(program, seed, **environment):
    return run([program, seed], env={**os.environ, **environment})


@pytest.mark.parametrize("seed", range(4))
def test_all_is_in_order(tmp_path_factory, seed):
    program = build(
        tmp_path_factory.mktemp("borrowed") / "borrowed", [HARNESS], "-O0", f"-I{HARNESS.parent}", *SANITIZE
    )
    for environment in (*({"STANDIN_ORDER": order} for order in ORDERS), {"METAFORK_ASYNC": "0"}):
        done = ended(program, seed, **environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """The harness with all faults, of which each is there where its number is asked for."""
    return planted(tmp_path_factory.mktemp("faulty"), HARNESS, FAULTS.values())


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_what_is_missing_is_seen(fault, faulty):
    number = "0" if fault is None else str(list(FAULTS).index(fault) + 1)
    tries = product(ORDERS, range(6))
    assert any(ended(faulty, seed, STANDIN_ORDER=order, PLANTED=number).returncode for order, seed in tries) == (
        fault is not None
    )
