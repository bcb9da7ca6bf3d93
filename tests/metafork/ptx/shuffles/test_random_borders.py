"""Random index arithmetic, most of it no border at all: whatever is taken for one, results stay the same."""

import random

import pytest

from tests.metafork.ptx.snippets import deltas, kernel, run, shuffled


class Indices:
    """Two random indices, made of what borders are made of, in %r6 and %r7; %r1 = n, %r8 = n - 1."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self):
        return self.random.choice(["1", "-1", "2", "-2", "%r1", "%r8", "0", "31", "32", "100", "1023"])

    def step(self, register):
        choose = self.random.choice
        source, number, sign = choose([register] * 3 + ["%r5"]), self.number(), choose("su")
        match choose(["add", "add", "sub", "min", "max", "rem", "and", "selp", "move", "abs", "shr", "less", "period"]):
            case "add" | "sub" as opcode:
                return f"{opcode}.s32 {register}, {source}, {number};"
            case "min" | "max" as opcode:
                return f"{opcode}.{sign}32 {register}, {source}, {number};"
            case "rem":
                return f"rem.{sign}32 {register}, {source}, %r1;"
            case "period":
                return f"rem.{sign}32 {register}, {source}, {choose([7, 32, 33, 37, 64, 100])};"
            case "and":
                return f"and.b32 {register}, {source}, {choose(['%r8', '63', '-64', '127', '-32'])};"
            case "abs":
                return f"abs.s32 {register}, {source};"
            case "shr":
                opcode, amount = choose(["add", "sub"]), choose([5, 6, 31])
                return f"shr.{sign}32 %r20, {register}, {amount}; {opcode}.s32 {register}, {register}, %r20;"
            case kind:
                comparison = choose(["lt.s32", "gt.s32", "ge.u32", "lt.u32", "eq.s32", "ne.s32"])
                test = f"setp.{comparison} %p2, {choose([register, '%r5'])}, {number};"
                guard = choose(["@%p2", "@!%p2"])
                return (
                    test
                    + {
                        "selp": f"selp.b32 {register}, {', '.join(self.random.sample([source, number], 2))}, %p2;",
                        "move": f"{guard} mov.u32 {register}, {number};",
                        "less": f"{guard} sub.s32 {register}, {register}, {number};",
                    }[kind]
                )

    def index(self, register, address):
        steps = [self.step(register) for _ in range(self.random.randint(1, 5))]
        within = [f"and.b32 {register}, {register}, 1023;"] * 4
        within.append(f"max.s32 {register}, {register}, 0; min.s32 {register}, {register}, 1023;")
        widened = f"mul.wide.{self.random.choice('su')}32 {address}, {register}, 4; add.s64 {address}, %rd1, {address};"
        return "".join([f"mov.u32 {register}, %r5;", *steps, self.random.choice(within), widened])

    def text(self):
        addresses = self.random.sample(["%rd4", "%rd6", "%rd7"], 3)
        loads = "".join(f"ld.global.f32 %f{i}, [{address}];" for i, address in enumerate(addresses, 1))
        return kernel(f"""
        add.s32 %r8, %r1, -1; {self.index("%r6", "%rd6")} {self.index("%r7", "%rd7")} {loads}
        add.f32 %f1, %f1, %f2; fma.rn.f32 %f1, %f3, %f1, %f3; st.global.f32 [%rd5], %f1;
        """)


def shuffles_with_equal_results(seed):
    indices = Indices(seed)
    before = indices.text()
    signed, hoist = indices.random.random() < 0.7, indices.random.random() < 0.6
    after, report = shuffled(before, signed_index=signed, hoist=hoist)
    n = indices.random.choice([100, 64, 33, 128, 7, 97])
    if after != before:
        for block in ((32, 1, 1), (13, 3, 1)):
            launch = {"n": n, "block": block, "size": 4096}
            assert run(before, **launch) == run(after, **launch), (seed, launch)
    return len(deltas(report))


def test_random_indices_keep_their_results():
    assert sum(map(shuffles_with_equal_results, range(20))) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 2000, 100))
def test_many_random_indices_keep_their_results(start):
    assert sum(map(shuffles_with_equal_results, range(start, start + 100))) > 30
