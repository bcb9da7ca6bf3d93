"""A tree as JSON, of version 1 and of version 3."""

import json

OLDER = json.loads(
    """
{ "format": "metafork-tree", "version": 1, "source": "jacobi1d.mf",
  "schedules": [ {
    "name": "jacobi1d_k0", "function": "jacobi1d", "line": 6,
    "parameters": {"data": ["N"], "program": ["s", "B", "t"], "machine": ["R", "RB", "T_", "Z"]},
    "derived": [{"name": "dim", "definition": "(N - 2)/(s*B)"}],
    "start": ["1 <= s", "1 <= B", "1 <= dim", "0 <= N - 2"],
    "counters": [{"name": "shared_memory", "kind": "resource", "limit": "Z"}],
    "strategies": ["cse1", "cse2", "granularity", "caching"],
    "root": {"counter": "shared_memory", "value": "2*s*B + 2", "condition": "2*s*B + 2 <= Z",
             "accept": {"leaf": 1}, "strategy": "granularity",
             "refuse": {"counter": "shared_memory", "value": "2*B + 2", "condition": "2*B + 2 <= Z",
                        "accept": {"leaf": 2}, "strategy": "caching",
                        "refuse": {"counter": "shared_memory", "value": "0", "condition": "0 <= Z",
                                   "accept": {"leaf": 3}, "strategy": null,
                                   "refuse": {"none": "inconsistent"}}}},
    "leaves": [ {"id": 1, "systems": [["2*s*B + 2 <= Z"]], "strategies": ["cse1", "cse2"],
                 "trace": ["4a", "3a", "2", "2"], "kernel": "jacobi1d_k0_leaf1",
                 "counters": {"shared_memory": "2*s*B + 2"}, "witness": {"N": 3, "s": 1, "B": 1, "Z": 4}},
                {"id": 2, "systems": [["2*B + 2 <= Z", "Z < 2*s*B + 2"]],
                 "strategies": ["granularity", "cse1", "cse2"],
                 "trace": ["3b", "4a", "2", "2"], "kernel": "jacobi1d_k0_leaf2",
                 "counters": {"shared_memory": "2*B + 2"}, "witness": {"N": 4, "s": 2, "B": 1, "Z": 4}},
                {"id": 3, "systems": [["Z < 2*B + 2"]], "strategies": ["granularity", "caching", "cse1", "cse2"],
                 "trace": ["3b", "4b", "2", "2"], "kernel": "jacobi1d_k0_leaf3",
                 "counters": {"shared_memory": "0"}, "witness": {"N": 3, "s": 1, "B": 1, "Z": 0}} ] } ] }
"""
)


def in_version_3(tree):
    """A tree of version 1 or 2 in version 3: instances and the kernel of a leaf are its variants."""
    tree = json.loads(json.dumps(tree))
    tree["version"] = 3
    for leaf in (leaf for schedule in tree["schedules"] for leaf in schedule["leaves"]):
        own = {key: leaf.pop(key) for key in ("strategies", "kernel", "counters")}
        instances = [
            {"strategies": [], "effects": [], "counters": {}, **one, "limits": one.get("system", [])}
            for one in leaf.pop("instances", [])
        ]
        for one in instances:
            one.pop("system", None)
        leaf["variants"] = [*instances, {**own, "limits": []}]
    return tree


EXAMPLE = in_version_3(OLDER)
