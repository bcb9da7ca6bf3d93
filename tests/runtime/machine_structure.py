"""The structure of ``machine.h`` for ctypes."""

import ctypes

from metafork.runtime.machine import FIELDS


class Target(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 48), ("numerator", ctypes.c_int64), ("denominator", ctypes.c_int64)]


class Machine(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in FIELDS),
        ("target_count", ctypes.c_int64),
        ("targets", Target * 8),
        ("compute_capability", ctypes.c_int64),
    ]
