"""Names of holes in sketches, and of their options."""

from __future__ import annotations

ALIASES = {
    "xforms": ("transform", 3),
    "xforms_no_group": ("transform", 2),
    "rots": ("rotate", 3),
    "rots_no_group": ("rotate", 2),
    "row_xforms": ("transform", 3),
    "col_xforms": ("transform", 3),
    "row_rots": ("rotate", 3),
    "col_rots": ("rotate", 3),
    "reg_select": ("select", 3),
    "general_select": ("select", 3),
    "cond_keep": ("keep", 3),
    "hvx_2x1": ("vector", 3),
}
"""Swizzleflow's hole, ours, and the level it stands for."""
OPTION_NAMES = {
    "transform": {"axis", "secondary", "primary", "level", "outside", "main", "second", "out"},
    "rotate": {"axis", "level", "main", "second", "out"},
    "exchange": {"axis"},
    "shift": {"axis"},
    "select": {"axis", "over", "constants", "level", "dims", "consts"},
    "keep": {"where", "over", "constants", "level", "restrict", "consts"},
    "vector": {"first", "in_lim", "fresh", "mux"},
    "accumulate": {"count", "constants", "level"},
}
"""What a hole may be told, by its name."""
