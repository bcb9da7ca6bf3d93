"""Trees and options that somebody made up: a clear error, or the answer, within two seconds of processor time."""

import copy
import json
import random
import re

import pytest
from click.testing import CliRunner

from metafork.comprehensive.cli import cli
from metafork.comprehensive.tree.tree_fields import TreeFormatError, parsed
from metafork.comprehensive.tree.tree_reading import from_json
from tests.comprehensive.metafork_command import metafork
from tests.comprehensive.tree.example_tree import EXAMPLE as TREE
from tests.processor_time import within

SELECT = ("select", "tree.json", "--machine", "sm_80", "s=2", "B=4", "N=100", "t=1")
FILES = ("tree.json", "tree.dot", "f.mf", "out")
RENDER = ("render", "tree.json", "-o", "tree.dot")


def at_most_two_seconds(arguments, folder):
    """Run a command; return its status and what it said."""
    words = [str(folder / word) if word in FILES else word for word in arguments]
    with within(2):
        done = CliRunner().invoke(cli, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code in (0, 1, 2)
    assert len(done.output) < 3000
    return done.exit_code, done.output


def changed(**changes):
    """The tree with changes to its schedule."""
    tree = copy.deepcopy(TREE)
    tree["schedules"][0].update(changes)
    return tree


def chain(length):
    tree = changed()
    schedule = tree["schedules"][0]
    node = schedule["root"]
    root = {"none": "the end"}
    for number in range(length):
        root = {**node, "condition": f"s*B + {number} <= Z", "accept": {"leaf": 1}, "refuse": root}
    schedule["root"] = root
    return tree


def with_condition(text):
    tree = changed()
    tree["schedules"][0]["root"]["condition"] = text
    return tree


def with_variants(*variants):
    """The tree with these variants before the own one of leaf 1."""
    tree = changed()
    leaf = tree["schedules"][0]["leaves"][0]
    leaf["variants"] = [*variants, *leaf["variants"]]
    return tree


def with_variant(values, kernel="f_k1_leaf1_v1", **more):
    return with_variants({"kernel": kernel, "values": values, "strategies": [], "limits": [], "counters": {}} | more)


def alone(**changes):
    """The tree whose first leaf has one variant, changed."""
    tree = changed()
    (own,) = tree["schedules"][0]["leaves"][0]["variants"]
    own |= changes
    return tree


SUMS = "*".join(["(s + B)"] * 40)
HOSTILE = {
    "a leaf that is not there": (changed(root={"leaf": 77}), "schedules[0].root.leaf: 77 is not within 1 and"),
    "leaf -1": (changed(root={"leaf": -1}), "-1 is not within 1 and"),
    "leaf true": (changed(root={"leaf": True}), "an integer is expected, not True"),
    "leaf 1.0": (changed(root={"leaf": 1.0}), "an integer is expected, not 1.0"),
    "leaf of a list": (changed(root={"leaf": [1]}), "an integer is expected, not an array"),
    "50,000 parentheses": (with_condition("(" * 50_000 + "s" + ")" * 50_000 + " <= Z"), "nest more than 100 deep"),
    "50,000 signs": (with_condition("-" * 50_000 + "s <= Z"), "nest more than 100 deep"),
    "a product of sums": (with_condition(f"{SUMS} <= Z"), None),
    "a product of many sums": (with_condition("*".join(["(s + B + N + Z)"] * 40) + " <= Z"), "more than 4000 terms"),
    "a high degree": (with_condition("*".join(["s"] * 5000) + " <= Z"), "its degree is more than 60"),
    "many digits": (with_condition(f"{'9' * 5000} <= Z"), "a number has more than 200 digits"),
    "many factors": (with_condition("*".join(["999"] * 20_000) + " <= Z"), "a coefficient has more than 200 digits"),
    "many terms": (with_condition(" + ".join(["s"] * 20_000) + " <= Z"), None),
    "too many terms": (with_condition(" + ".join(["s"] * 900_000) + " <= Z"), "more than 120000 names"),
    "division by zero": (with_condition("s/0 <= Z"), "only division by an integer"),
    "other digits": (with_condition("s + \u0663 <= Z"), "has no place in an inequality"),
    "no systems": (changed(leaves=[{**TREE["schedules"][0]["leaves"][0], "systems": []}]), "at least one system"),
    "leaves out of order": (changed(leaves=TREE["schedules"][0]["leaves"][::-1]), "numbered in their order"),
    "derived twice": (
        changed(derived=[{"name": "d", "definition": "s/1"}, {"name": "d", "definition": "B/1"}]),
        "d is defined twice",
    ),
    "derived by itself": (changed(derived=[{"name": "d", "definition": "d/1"}]), "'d' is not known here"),
    "a lone surrogate": (changed(function="\ud800"), "cannot be printed"),
    "control characters": (changed(function="f\x1b[2J"), "cannot be printed"),
    "no text": (changed(function=None), "a text is expected, not null"),
    "a line that is none": (changed(line="1"), "an integer is expected"),
    "a huge witness": (changed(fixed={"Q": 10**200}), "a number beyond 64 bits is not within"),
    "fraction by zero": (changed(fixed={"Q": "1/0"}), "'1/0' divides by zero"),
    "a fraction with an exponent": (changed(fixed={"Q": "1e999999999"}), "neither an integer nor a fraction"),
    "no array": (changed(start="s"), "an array is expected, not 's'"),
    "variants that are no array": (
        changed(leaves=[{**TREE["schedules"][0]["leaves"][0], "variants": {}}]),
        "leaves[0].variants: an array is expected, not an object",
    ),
    "no variants": (
        changed(leaves=[{**TREE["schedules"][0]["leaves"][0], "variants": []}]),
        "the last variant has neither values nor limits",
    ),
    "a last variant with limits": (alone(limits=["1 <= s"]), "the last variant has neither values nor limits"),
    "a last variant with values": (alone(values={"s": 2}), "the last variant has neither values nor limits"),
    "a variant that is no object": (with_variants(3), "variants[0]: an object is expected, not 3"),
    "a variant without limits": (
        with_variants({"kernel": "f", "strategies": [], "counters": {}}),
        "there is no 'limits'",
    ),
    "a variant for no values": (with_variant({}), "variants[0].values: an instance has at least one value"),
    "a variant of a kernel that is no name": (with_variant({"s": 2}, "f; g"), "'f; g' is no name"),
    "a variant for data": (with_variant({"N": 2}), "'N' is no program parameter"),
    "a variant for a name of two lines": (with_variant({"q\n": 2}), "cannot be printed"),
    "a variant for a fraction": (with_variant({"s": 2.0}), "values.s: an integer is expected, not 2.0"),
    "a variant for true": (with_variant({"s": True}), "values.s: an integer is expected, not True"),
    "a variant for a text": (with_variant({"s": "2"}), "values.s: an integer is expected, not '2'"),
    "a variant for 0": (with_variant({"s": 0}), "values.s: 0 is not within 1 and"),
    "a variant for a huge number": (with_variant({"s": 10**200}), "a number beyond 64 bits is not within"),
    "a variant whose limits are a text": (with_variant({"s": 2}, limits="s <= Z"), "variants[0].limits: an array is"),
    "a variant that needs a name": (with_variant({"s": 2}, limits=["24 <= Q9"]), "'Q9' is not known here"),
    "a variant that needs nothing": (with_variant({"s": 2}), None),
    "a variant of no registers": (with_variant({"s": 2}, counters={"r": "s/0"}), "only division by an integer"),
    "an object for a text": (changed(strategies=[{}]), "a text is expected, not an object"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("arguments", [SELECT, RENDER], ids=["select", "render"])
def test_hostile_trees_are_errors_of_the_input(name, arguments, tmp_path):
    tree, message = HOSTILE[name]
    (tmp_path / "tree.json").write_text(json.dumps(tree))
    status, said = at_most_two_seconds(arguments, tmp_path)
    if message is None:
        assert status == 0, said
    else:
        assert status == 1
        assert message in said


TEXTS = {
    "200,000 arrays": ("[" * 200_000 + "]" * 200_000, "it nests too deeply"),
    "200,000 objects": ('{"a":' * 200_000 + "1" + "}" * 200_000, "it nests too deeply"),
    "a number of 5,000 digits": ('{"format": "metafork-tree", "version": ' + "1" * 5000 + "}", "it is no JSON"),
    "NaN": (json.dumps(changed(line=float("nan"))), "NaN is no number of JSON"),
    "Infinity": (json.dumps(changed(line=float("-inf"))), "-Infinity is no number of JSON"),
    "a large exponent": (json.dumps(changed(line=1)).replace('"line": 1', '"line": 1e999'), "an integer is expected"),
    "a key twice": (json.dumps(changed()).replace('"line"', '"name": "f", "line"'), "the key 'name' occurs twice"),
    "version 2.0": ('{"format": "metafork-tree", "version": 2.0}', "version: this version"),
    "version of a list": ('{"format": "metafork-tree", "version": [1]}', "version: this version"),
    "version true": ('{"format": "metafork-tree", "version": true}', "version: this version"),
    "nothing": ("", "it is no JSON"),
    "a list": ("[]", "not a decision tree"),
    "null": ("null", "not a decision tree"),
    "half a file": (json.dumps(changed())[:500], "it is no JSON"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_texts_are_errors_of_the_input(name, tmp_path):
    text, message = TEXTS[name]
    (tmp_path / "tree.json").write_text(text)
    status, said = at_most_two_seconds(SELECT, tmp_path)
    assert status == 1
    assert message in said


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "tree.json").write_bytes(b"\xff\xfe{}")
    assert at_most_two_seconds(RENDER, tmp_path)[0] == 1


def test_a_chain_of_900_refusals_is_a_tree(tmp_path):
    """In a process of its own, where nothing else stands on Python's stack."""
    (tmp_path / "tree.json").write_text(json.dumps(chain(900)))
    assert "leaf 1" in metafork(*SELECT, cwd=tmp_path).stdout
    metafork(*RENDER, "--full", cwd=tmp_path)
    text = (tmp_path / "tree.dot").read_text()
    assert text.count("-> k0_node") == 899
    assert text.count("-> k0_leaf1 ") == 1
    assert len(re.findall(r"-> k0_again\d+ ", text)) == 899
    metafork("render", "tree.json", "-o", "tree.svg", cwd=tmp_path)
    assert "884 more conditions" in (tmp_path / "tree.svg").read_text()


def test_a_chain_of_700_refusals_is_too_large_to_be_drawn_in_full(tmp_path):
    (tmp_path / "tree.json").write_text(json.dumps(chain(700)))
    status, said = at_most_two_seconds(("render", "--full", "tree.json"), tmp_path)
    assert status == 1
    assert "Graphviz too long; -o NAME.dot writes the drawing as text" in said


def test_a_chain_of_5000_refusals_is_told_to_be_too_long(tmp_path):
    # Written level by level: Python's own writer does not go so deep.
    tree = chain(1)
    node = json.dumps(tree["schedules"][0]["root"])
    opening, closing = node.split('{"none": "the end"}')
    (tmp_path / "tree.json").write_text(json.dumps(tree).replace(node, opening * 5000 + node + closing * 5000))
    status, said = at_most_two_seconds(SELECT, tmp_path)
    assert status == 1
    assert "it nests too deeply" in said


def test_derived_values_that_grow_without_end_are_not_computed(tmp_path):
    derived = [*TREE["schedules"][0]["derived"], {"name": "d0", "definition": "(s*s*s)/1"}]
    derived += [{"name": f"d{n}", "definition": f"(d{n - 1}*d{n - 1})/1"} for n in range(1, 60)]
    (tmp_path / "tree.json").write_text(json.dumps(changed(derived=derived)))
    status, said = at_most_two_seconds(SELECT, tmp_path)
    assert status == 0
    assert "does not fit 64 bits" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--machine", "R=" + "9" * 5000), "R=999999999999... is too large"),
        (("--machine", "R=1/" + "9" * 5000), "too large"),
        (("--machine", "warp_size=0"), "warp_size is at least 1, not 0"),
        (("--machine", "grid_dim_x=0"), "grid_dim_x is at least 1, not 0"),
        (("--machine", "," * 100_000), "is neither NAME=VALUE nor a preset"),
        (("--machine", "sm_" + "8" * 100_000), "there is no machine"),
        (("--machine", "sm_80", "s=" + "9" * 5000), "s does not fit 64 bits"),
        (("--machine", "sm_80", "s=1_0"), "s=1_0: give a whole number, such as s=10"),
        (("--machine", "sm_80", "s=\u0663"), "give a whole number"),
        (("--machine", "sm_80", "s=1", "s=2"), "s is given twice"),
    ],
)
def test_hostile_options_are_mistakes_of_the_user(arguments, message, tmp_path):
    (tmp_path / "tree.json").write_text(json.dumps(TREE))
    status, said = at_most_two_seconds(("select", "tree.json", *arguments), tmp_path)
    assert status == 2
    assert message in said


@pytest.mark.parametrize("assumption", ["(" * 50_000, SUMS + " <= 1", "1" * 5000 + " <= s", "-" * 50_000 + "s <= 1"])
def test_hostile_assumptions_are_mistakes_of_the_user(assumption, tmp_path):
    (tmp_path / "f.mf").write_text(
        "void f(int n, int s, int B, float a[n * B]) { meta_schedule {"
        " meta_for (int i = 0; i < n; i++) meta_for (int j = 0; j < B; j++) a[i * B + j] = s; } }"
    )
    names = ("--counters", "threads_per_block", "--strategies", "granularity", "--assume", assumption)
    assert at_most_two_seconds(("optimize", "f.mf", *names), tmp_path)[0] in (0, 2)


WRONG = (
    None,
    True,
    False,
    -1,
    0,
    2**70,
    1.5,
    "",
    "x",
    "1/0",
    "s",
    "(",
    "s <= Z",
    "\ud800",
    [],
    {},
    [[]],
    [None],
    {"leaf": 1},
)


def mutated(tree, numbers):
    """The tree with one to three random changes: values exchanged, left out, repeated, or put elsewhere."""
    for _ in range(numbers.randint(1, 3)):
        places = []

        def below(value, places=places):
            for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
                places.append((value, key))
                if isinstance(inner, dict | list):
                    below(inner)

        below(tree)
        holder, key = numbers.choice(places)
        match numbers.randrange(4):
            case 0:
                holder[key] = copy.deepcopy(numbers.choice(WRONG))
            case 1:
                del holder[key]
            case 2:
                other, place = numbers.choice(places)
                holder[key] = copy.deepcopy(other[place]) if not _inside(other[place], holder) else 7
            case 3 if isinstance(holder[key], str) and holder[key]:
                text, at = holder[key], numbers.randrange(len(holder[key]))
                holder[key] = text[:at] + numbers.choice("()+-*/<>=,sBZ019 \x00_") + text[at + numbers.randrange(2) :]
            case _:
                holder[key] = [holder[key]]
    return tree


def _inside(value, holder):
    if value is holder:
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_inside(one, holder) for one in inner)


def attack(folder, seed, rounds):
    numbers = random.Random(seed)
    read = refused = 0
    for _ in range(rounds):
        tree = mutated(copy.deepcopy(TREE), numbers)
        text = json.dumps(tree)
        try:
            from_json(parsed(text))
            read += 1
        except TreeFormatError:
            refused += 1
            continue
        (folder / "tree.json").write_text(text)
        for arguments in (SELECT, RENDER):
            at_most_two_seconds(arguments, folder)
    assert read > rounds // 50
    assert refused > rounds // 3


def test_mutated_trees_are_read_or_refused(tmp_path):
    attack(tmp_path, 1, 400)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_mutated_trees_are_read_or_refused(tmp_path, seed):
    attack(tmp_path, seed, 3000)
