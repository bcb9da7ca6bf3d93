import re
from fractions import Fraction
from pathlib import Path

import pytest

import metafork
from metafork.analysis.analyses import NVIDIA
from metafork.runtime.machine import (
    DEFAULT,
    FIELDS,
    PRESETS,
    Machine,
    MachineError,
    OwnLimit,
    given_values,
    gpus_of,
    parse_machine,
    preset_of_gpu,
    presets_between,
)

HEADER = Path(metafork.__file__).parent / "runtime" / "include" / "metafork" / "machine.h"


def test_overrides_change_single_fields():
    machine = parse_machine("R=63,T=1024,Z=12288")
    assert (machine.registers_per_thread, machine.threads_per_block, machine.shared_words) == (63, 1024, 12288)
    assert machine.registers_per_block == DEFAULT.registers_per_block


def test_a_preset_gives_every_field_and_later_entries_win():
    values = given_values("Z=1, sm_20, warp_size=16")
    assert set(values) == set(FIELDS)
    assert values["shared_words"] == 12288
    assert values["warp_size"] == 16


def test_other_names_are_targets_and_may_be_fractions():
    machine = parse_machine("occupancy=3/4,intensity=1.5,RB=4096")
    assert machine.targets == {"occupancy": Fraction(3, 4), "intensity": Fraction(3, 2)}
    assert machine.registers_per_block == 4096


def test_a_range_has_the_presets_between_its_ends():
    assert presets_between("sm_86 .. sm_90") == ("sm_86", "sm_87", "sm_88", "sm_89", "sm_90")
    assert presets_between(NVIDIA.machines)[0] == "sm_75"
    assert presets_between("sm_80") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sm_90..sm_80", "write sm_80..sm_90"),
        ("sm_80..", "no preset ''"),
        ("sm_80..h100", "no preset 'h100'"),
        ("gfx90a..gfx942", "gfx90a has no compute capability"),
        ("sm_80..gfx1100", "gfx1100 has no compute capability"),
    ],
)
def test_a_range_without_presets_is_refused(text, told):
    with pytest.raises(MachineError, match=told):
        presets_between(text)


def test_nothing_given_changes_nothing():
    assert parse_machine("  ") == DEFAULT


@pytest.mark.parametrize(
    "text", ["R", "R=", "R=x", "R=-1", "R=1.5", "=3", "R=1,,T=2", "R=1,", "sm_99", "q=1/0", "R=99999999999999999999"]
)
def test_malformed_texts_are_refused(text):
    with pytest.raises(MachineError):
        parse_machine(text)


def test_the_header_has_the_same_presets():
    rows = {
        name: [int(number) for number in numbers.split(",")]
        for name, numbers in re.findall(r'\{"(sm_\d+|gfx\w+)", ([\d, ]+)\}', HEADER.read_text())
    }
    assert rows == {
        name: [
            machine.registers_per_thread,
            machine.registers_per_block,
            machine.threads_per_block,
            machine.shared_words * 4,
            machine.warps_per_sm,
            machine.blocks_per_sm,
            machine.registers_per_sm,
            machine.shared_words_per_sm * 4,
            machine.warp_size,
            machine.block_dim_z,
            machine.grid_dim_x,
        ]
        for name, machine in PRESETS.items()
    }


def test_the_header_has_the_same_fields_in_the_same_order():
    struct = re.search(r"typedef struct metafork_machine \{(.*?)\} metafork_machine;", HEADER.read_text(), re.S)
    assert struct is not None
    assert tuple(re.findall(r"int64_t (\w+);", struct[1])[: len(FIELDS)]) == FIELDS


def test_fields_of_a_machine_are_its_parameters():
    assert tuple(Machine(*range(17)).fields().items()) == tuple(zip(FIELDS, range(17), strict=True))


def test_gpus_of_amd_have_limits_of_their_own():
    """Waves that fill a multiprocessor have its register file to share, and blocks that fill it its shared memory."""
    for name, lanes in (("gfx90a", 64), ("gfx942", 64), ("gfx1100", 32)):
        machine = PRESETS[name]
        assert machine.warp_size == lanes
        assert machine.warps_per_sm * machine.warp_size == 2048
        assert machine.registers_per_sm in (64 * 2048, 96 * 2048)
        assert machine.shared_words * 4 == 64 * 1024 <= machine.shared_words_per_sm * 4
        assert machine.grid_dim_x * machine.block_dim_x < 2**32
    assert preset_of_gpu("AMD Instinct MI300X") == "gfx942"
    assert preset_of_gpu("RX 7900 XTX") == "gfx1100"


def test_gpus_are_written_as_people_write_them():
    assert gpus_of("sm_75") == ("T4", "RTX 2080", "RTX 2080 Ti")
    assert gpus_of("gfx1100")[0] == "RX 7900 XT"  # not the architecture, RDNA3
    names = [(preset, name) for preset in PRESETS for name in gpus_of(preset)]
    assert [(preset, name) for preset, name in names if preset_of_gpu(name) != preset] == []


def test_a_counters_own_limit_goes_by_compute_capability():
    limit = OwnLimit(7, {"sm_80": 8, "sm_90": 9})
    assert [limit.of(name) for name in ("sm_75", "sm_86", "sm_120", "gfx942")] == [7, 8, 9, 7]
    assert given_values("gfx90a", {"TS": limit})["TS"] == 7
    with pytest.raises(MachineError, match="gfx90a has no compute capability"):
        OwnLimit(7, {"gfx90a": 8})


@pytest.mark.parametrize(
    ("name", "like", "shared", "threads"),
    [
        ("sm_87", "sm_80", 163, 1536),
        ("sm_88", "sm_86", 99, 1536),
        ("sm_103", "sm_100", 227, 2048),
        ("sm_110", "sm_100", 227, 1536),
        ("sm_121", "sm_120", 99, 1536),
        ("sm_90a", "sm_90", 227, 2048),
        ("sm_103f", "sm_103", 227, 2048),
    ],
)
def test_machines_that_nvcc_13_compiles_for(name, like, shared, threads):
    machine = parse_machine(name)
    assert (machine.shared_words * 4, machine.warps_per_sm * 32) == (shared * 1024, threads)
    assert machine.shared_words == PRESETS[like].shared_words


def test_ends_of_ranges_may_have_suffixes():
    assert presets_between("sm_100a..sm_110f") == ("sm_100", "sm_103", "sm_110")
