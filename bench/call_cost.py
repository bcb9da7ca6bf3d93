"""What a call from Python costs beside the same call through ctypes: ``python bench/call_cost.py``.

The function has an empty schedule, so that only the way to it counts.
"""

from __future__ import annotations

import ctypes
import timeit

import numpy as np

import metafork

TEXT = """
void nothing(int n, int s, int B, const float x[n], float y[n])
{
  int blocks = (n - 2) / (s * B);
  if (n > 1000)
    meta_schedule {
      meta_for (int i = 0; i < blocks; i++)
        meta_for (int u = 0; u < B; u++)
          y[i * B + u] = x[i * B + u];
    }
}
"""
CALLS, REPEATS = 20_000, 9


def microseconds(call: timeit.Timer) -> float:
    """Return the time of one call, the least of several measurements."""
    return min(call.repeat(REPEATS, CALLS)) / CALLS * 1e6


def main() -> None:
    """Print the time of each way to call."""
    loaded = metafork.load(TEXT, cpu=True)
    x, y = np.zeros(100, np.float32), np.zeros(100, np.float32)
    bare = ctypes.CDLL(str(loaded.library)).nothing
    bare.argtypes = [ctypes.c_int] * 3 + [ctypes.c_void_p] * 2
    bare.restype = None
    known = {"nothing": loaded.nothing, "bare": bare, "x": x, "y": y, "px": x.ctypes.data, "py": y.ctypes.data}
    ways = {
        "ctypes, addresses at hand": "bare(100, 4, 8, px, py)",
        "ctypes, x.ctypes.data": "bare(100, 4, 8, x.ctypes.data, y.ctypes.data)",
        "by position": "nothing(100, 4, 8, x, y)",
        "by position, n left out": "nothing(4, 8, x, y)",
        "by name": "nothing(s=4, B=8, x=x, y=y)",
    }
    for name, text in ways.items():
        print(f"{name:28} {microseconds(timeit.Timer(text, globals=known)):6.2f} us")


if __name__ == "__main__":
    main()
