"""The source CFG: what is known about a program along its paths (DESIGN section 3).

``uniform_paths`` gives one specialised program for each outcome of the conditions that a whole block decides alike.
"""

from __future__ import annotations

from metafork.source_cfg_paths import UniformPath, uniform_paths

__all__ = ["UniformPath", "uniform_paths"]
