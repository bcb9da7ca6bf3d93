"""Machines: the limits that decision trees branch on, presets by architecture, and ``R=63,T=1024`` overrides.

The presets are NVIDIA's compute-capability tables, and for ``gfx...`` AMD's: wave, local data share and register file
of ROCm's "GPU hardware specifications", waves and barriers of LLVM (``AMDGPUBaseInfo``: ``getMaxWavesPerEU`` and
``getMaxWorkGroupsPerCU``).  ``metafork/machine.h`` has the same ones for the dispatcher, which reads
``METAFORK_MACHINE`` in the form that ``parse_machine`` accepts.  Sizes of shared memory are in 4-byte words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

SYMBOLS: Mapping[str, str] = MappingProxyType(
    {
        "registers_per_thread": "R",
        "registers_per_block": "RB",
        "threads_per_block": "T",
        "shared_words": "Z",
    }
)
"""The papers' symbols of machine parameters; every other field goes by its own name."""

_ENTRY = re.compile(r"\s*([A-Za-z0-9_]{1,47})\s*(?:=\s*([0-9]+(?:\.[0-9]{1,17}|/[0-9]+)?)\s*)?")
_LARGEST = 2**62
_MOST_DIGITS = 60


class MachineError(ValueError):
    """The text of a machine cannot be read; the message says where and what is expected."""


class OwnLimit(Struct, frozen=True):
    """The numbers of a machine symbol that is no field of ``Machine``: a counter's own (``evaluators.counter``).

    ``presets`` gives them by preset; a machine between two presets has those of the older one, and one older than all,
    or without a compute capability, has ``default``.  All are non-negative integers that fit 62 bits.
    """

    default: int
    presets: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = [name for name in self.presets if name not in PRESETS]
        if unknown:
            raise MachineError(f"there is no preset {unknown[0]!r}; presets are {', '.join(PRESETS)}")
        without = [name for name in self.presets if compute_capability(name) == 0]
        if without:
            raise MachineError(f"{without[0]} has no compute capability, by which numbers are found")
        for number in (self.default, *self.presets.values()):
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _LARGEST:
                raise MachineError(f"a limit is an integer from 0 to 2^62, not {number!r}")

    def by_capability(self) -> dict[int, int]:
        """Return the numbers by compute capability (80 for ``sm_80``), in rising order."""
        return dict(sorted((compute_capability(name), number) for name, number in self.presets.items()))

    def of(self, preset: str) -> int:
        """Return the number of a preset."""
        asked, found = compute_capability(preset), self.default
        for capability, number in self.by_capability().items():
            found = number if capability <= asked else found
        return found


def compute_capability(preset: str) -> int:
    """Return 80 for ``sm_80``, and 0 for a preset that is no GPU of NVIDIA's."""
    return int(preset_name(preset).removeprefix("sm_")) if preset.startswith("sm_") else 0


def preset_name(name: str) -> str:
    """Return a name without the suffix of code for one machine or its family: ``sm_90`` for ``sm_90a``."""
    found = re.fullmatch(r"(sm_(?:9|1\d)\d)[af]", name)
    return name if found is None else found[1]


class Between(Struct, frozen=True):
    """What a limit may be on some machines: the least and the greatest number, both included."""

    least: int | Fraction
    most: int | Fraction


class Machine(Struct, frozen=True):
    """Limits of a thread, a block, a launch and a multiprocessor; ``targets`` are those of performance counters."""

    registers_per_thread: int
    registers_per_block: int
    threads_per_block: int
    shared_words: int
    block_dim_x: int
    block_dim_y: int
    block_dim_z: int
    grid_dim_x: int
    grid_dim_y: int
    grid_dim_z: int
    warp_size: int
    warps_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    shared_words_per_sm: int
    shared_words_unit: int
    shared_words_reserved: int
    targets: Mapping[str, Fraction] = field(default_factory=dict)

    def fields(self) -> dict[str, int]:
        """Return the machine parameters by field name, in the order of ``metafork_machine``."""
        return {name: getattr(self, name) for name in FIELDS}


FIELDS: tuple[str, ...] = tuple(name for name in Machine.__match_args__ if name != "targets")
"""The names of the machine parameters, in the order of ``metafork_machine``."""

POSITIVE: frozenset[str] = frozenset(
    name
    for name in FIELDS
    if name.startswith(("block_dim_", "grid_dim_")) or name in ("warp_size", "warps_per_sm", "shared_words_unit")
)
"""Fields that no machine has zero of: what is divided by them, or launched with them, must exist."""

MOST_THREADS_OF_A_WARP = 1024
"""What ``warp_size`` may be at most: a block of the largest GPU is one warp then."""


def _preset(
    registers_per_thread: int,
    registers: int,
    shared_bytes: int,
    warps: int,
    blocks: int,
    shared_bytes_per_sm: int,
    reserved_bytes: int = 0,
) -> Machine:
    """Return a GPU of NVIDIA's; those that reserve shared memory for each block hand it out in units half as large."""
    return Machine(
        registers_per_thread=registers_per_thread,
        registers_per_block=registers,
        threads_per_block=1024,
        shared_words=shared_bytes // 4,
        block_dim_x=1024,
        block_dim_y=1024,
        block_dim_z=64,
        grid_dim_x=2**31 - 1,
        grid_dim_y=65535,
        grid_dim_z=65535,
        warp_size=32,
        warps_per_sm=warps,
        blocks_per_sm=blocks,
        registers_per_sm=registers,
        shared_words_per_sm=shared_bytes_per_sm // 4,
        shared_words_unit=(128 if reserved_bytes else 256) // 4,
        shared_words_reserved=reserved_bytes // 4,
    )


def _amd(lanes: int, registers: int, shared_bytes_per_sm: int, waves: int, blocks: int) -> Machine:
    """Return a GPU of AMD's; its multiprocessor is a compute unit, or what RDNA calls a work-group processor.

    A thread has the 256 vector registers that instructions can name, a block 64 KiB of the local data share, and a
    launch less than 2^32 threads in each direction.
    """
    return Machine(
        registers_per_thread=256,
        registers_per_block=registers,
        threads_per_block=1024,
        shared_words=65536 // 4,
        block_dim_x=1024,
        block_dim_y=1024,
        block_dim_z=1024,
        grid_dim_x=(2**32 - 1) // 1024,
        grid_dim_y=65535,
        grid_dim_z=65535,
        warp_size=lanes,
        warps_per_sm=waves,
        blocks_per_sm=blocks,
        registers_per_sm=registers,
        shared_words_per_sm=shared_bytes_per_sm // 4,
        shared_words_unit=512 // 4,
        shared_words_reserved=0,
    )


PRESETS: Mapping[str, Machine] = MappingProxyType(
    {
        "sm_20": _preset(63, 32768, 49152, 48, 8, 49152),
        "sm_35": _preset(255, 65536, 49152, 64, 16, 49152),
        "sm_60": _preset(255, 65536, 49152, 64, 32, 65536),
        "sm_70": _preset(255, 65536, 98304, 64, 32, 98304),
        "sm_75": _preset(255, 65536, 65536, 32, 16, 65536),
        "sm_80": _preset(255, 65536, 166912, 64, 32, 167936, 1024),
        "sm_86": _preset(255, 65536, 101376, 48, 16, 102400, 1024),
        "sm_87": _preset(255, 65536, 166912, 48, 16, 167936, 1024),
        "sm_88": _preset(255, 65536, 101376, 48, 16, 102400, 1024),
        "sm_89": _preset(255, 65536, 101376, 48, 24, 102400, 1024),
        "sm_90": _preset(255, 65536, 232448, 64, 32, 233472, 1024),
        "sm_100": _preset(255, 65536, 232448, 64, 32, 233472, 1024),
        "sm_103": _preset(255, 65536, 232448, 64, 32, 233472, 1024),
        "sm_110": _preset(255, 65536, 232448, 48, 24, 233472, 1024),
        "sm_120": _preset(255, 65536, 101376, 48, 24, 102400, 1024),
        "sm_121": _preset(255, 65536, 101376, 48, 24, 102400, 1024),
        "gfx90a": _amd(64, 131072, 65536, 32, 16),
        "gfx942": _amd(64, 131072, 65536, 32, 16),
        "gfx1100": _amd(32, 196608, 131072, 64, 32),
    }
)
"""Machines by the name of their architecture (shared memory: the opt-in limit of a block).

NVIDIA gives no limits for compute capability 8.8; these are the least ones of its neighbours.
"""

_GPUS = {
    "sm_35": ("kepler", "k20", "k40"),
    "sm_60": ("pascal", "p100"),
    "sm_70": ("volta", "v100"),
    "sm_75": ("turing", "t4", "rtx2080", "rtx2080ti"),
    "sm_80": ("ampere", "a100", "a30"),
    "sm_86": ("rtx3090", "rtx3080", "a10", "a40", "a6000"),
    "sm_87": ("orin", "jetsonorin"),
    "sm_89": ("ada", "lovelace", "rtx4090", "rtx4080", "l4", "l40", "l40s"),
    "sm_90": ("hopper", "h100", "h200", "gh200"),
    "sm_100": ("blackwell", "b200", "b100", "gb200"),
    "sm_103": ("b300", "gb300"),
    "sm_110": ("thor", "jetsonthor"),
    "sm_120": ("rtx5090", "rtx5080"),
    "sm_121": ("gb10", "dgxspark"),
    "gfx90a": ("cdna2", "mi210", "mi250", "mi250x"),
    "gfx942": ("cdna3", "mi300", "mi300a", "mi300x", "mi325x"),
    "gfx1100": ("rdna3", "rx7900xt", "rx7900xtx", "w7900"),
}
"""What people call machines, by preset, the best known first."""


def gpus_of(preset: str) -> tuple[str, ...]:
    """Return names of GPUs that are a preset, as they are written on them: ``A100``, ``RTX 4090``."""
    known = _GPUS.get(preset, ())
    written = [re.sub(r"^(RTX|RX)|(?<=\d)(?=(TI|XTX?)$)", r"\1 ", name.upper()) for name in known if "dna" not in name]
    numbered = tuple(name.replace("TI", "Ti") for name in written if re.search(r"\d", name))
    return numbered or tuple(map(str.title, known[:1]))


def presets_between(text: str) -> tuple[str, ...] | None:
    """Return the presets of ``sm_80..sm_90``, ends included, and ``None`` for a text of another form.

    Raises ``MachineError`` for an end that is no preset or has no compute capability, and where the second end is the
    older one.
    """
    first, dots, last = (part.strip() for part in text.partition(".."))
    if not dots:
        return None
    first, last = preset_name(first), preset_name(last)
    for name in (first, last):
        if name not in PRESETS:
            raise MachineError(f"there is no preset {name!r}; presets are {', '.join(PRESETS)}")
    ends = compute_capability(first), compute_capability(last)
    for name, capability in zip((first, last), ends, strict=True):
        if capability == 0:
            raise MachineError(f"{name} has no compute capability, and a range is one of these")
    if ends[0] > ends[1]:
        raise MachineError(f"{text.strip()} is empty; write {last}..{first}")
    return tuple(name for name in PRESETS if ends[0] <= compute_capability(name) <= ends[1])


def preset_of_gpu(name: str) -> str | None:
    """Return the preset of a GPU or an architecture by its usual name (``h100``, ``RTX 4090``), else ``None``."""
    word = re.sub(r"[^a-z0-9]", "", name.lower()).removeprefix("nvidia").removeprefix("geforce")
    word = word.removeprefix("amd").removeprefix("instinct").removeprefix("radeon").removeprefix("pro")
    return next((preset for preset, names in _GPUS.items() if word in names), None)


DEFAULT = PRESETS["sm_80"]
"""What the CPU build reports."""


def given_values(text: str, limits: Mapping[str, OwnLimit] = MappingProxyType({})) -> dict[str, Fraction]:
    """Read ``sm_80``, ``R=63,T=1024`` or ``sm_20,Z=4096`` and return what it gives, by field name.

    A preset gives every field; later entries win.  A name that is no field is one of ``limits``, which a preset gives
    where no number is given, or the target of a performance counter; only targets may have a fraction.  An empty text
    gives nothing.  Raises ``MachineError``.
    """
    values: dict[str, Fraction] = {}
    own: dict[str, Fraction] = {}
    if not text.strip():
        return values
    names = {symbol: name for name, symbol in SYMBOLS.items()}
    for entry in text.split(","):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise MachineError(f"{entry.strip()[:60]!r} is neither NAME=VALUE nor a preset ({', '.join(PRESETS)})")
        name, number = match.groups()
        if number is None:
            name = preset_name(name)
            if name not in PRESETS:
                raise MachineError(f"there is no preset {name!r}; presets are {', '.join(PRESETS)}")
            values.update({key: Fraction(value) for key, value in PRESETS[name].fields().items()})
            own = {key: Fraction(limit.of(name)) for key, limit in limits.items()}
            continue
        name = names.get(name, name)
        if len(number) > _MOST_DIGITS:
            raise MachineError(f"{entry.strip()[:14]}... is too large: numbers go to 2^62")
        try:
            value = Fraction(number)
        except ZeroDivisionError:
            raise MachineError(f"{entry.strip()[:60]!r} divides by zero") from None
        if (name in FIELDS or name in limits) and value.denominator != 1:
            raise MachineError(f"{name} is an integer, not {number}")
        if max(value.numerator, value.denominator) > _LARGEST:
            raise MachineError(f"{number} is too large")
        if name in POSITIVE and value < 1:
            raise MachineError(f"{name} is at least 1, not {number}")
        if name == "warp_size" and value > MOST_THREADS_OF_A_WARP:
            raise MachineError(f"{name} is at most {MOST_THREADS_OF_A_WARP}, not {number}")
        values[name] = value
    return {**own, **values}


def parse_machine(text: str, base: Machine = DEFAULT) -> Machine:
    """Return ``base`` with what ``text`` gives in its place; raises ``MachineError`` as ``given_values`` does."""
    values = given_values(text)
    fields = {name: int(value) for name, value in values.items() if name in FIELDS}
    targets = {name: value for name, value in values.items() if name not in FIELDS}
    return replace(base, **fields, targets={**base.targets, **targets})
