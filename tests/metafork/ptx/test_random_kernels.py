"""Random kernels: transformed code leaves the same memory, whatever stores, branches and loops stand between loads.

One warp a launch, so that lanes run in lockstep and even racy programs have one outcome.
"""

import random

import pytest

from tests.metafork.ptx.snippets import INDEX, deltas, kernel, run, shuffled

BLOCKS = ((32, 1, 1), (31, 1, 1), (7, 4, 1), (8, 2, 2))


class Generator:
    """Random bodies over arrays a (%rd4) and b (%rd5); sums are kept in %f30."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.labels = 0
        self.written = self.random.random() < 0.6
        self.register = 0

    def place(self):
        base = self.random.choice(["%rd4", "%rd4", "%rd4", "%rd20", "%rd20", "%rd5"])
        return base, 4 * self.random.randint(-3, 3)

    def load(self):
        base, offset = self.place()
        nc = "" if self.written or base == "%rd5" else self.random.choice(["", ".nc"])
        self.register = self.register % 20 + 1
        guard = self.random.choice(["", "", "", "", "@%p7 "])
        kind = self.random.choice(["f32", "f32", "b32"])
        return [
            f"{guard}ld.global{nc}.{kind} %f{self.register}, [{base}+{offset}];",
            f"fma.rn.f32 %f30, %f30, 0f3F000000, %f{self.register};",
        ]

    def store(self):
        base, offset = self.place()
        offset += self.random.choice([0, 0, 4 * 40, -4 * 40])
        if not self.written:
            base, offset = "%rd5", 4096
        guard = self.random.choice(["", "", "@%p7 "])
        return [f"{guard}st.global.f32 [{base}+{offset}], %f30;"]

    def skip(self, depth):
        self.labels += 1
        label = f"SKIP{self.labels}"
        condition = self.random.choice(["%p6", "%p7", "!%p6", "%p5", "%p5"])
        return [f"@{condition} bra {label};", *self.body(depth - 1), f"{label}:"]

    def loop(self, depth):
        self.labels += 1
        label, counter = f"LOOP{self.labels}", f"%r{20 + self.labels % 10}"
        bound = self.random.choice(["2", "3", "%r30"])
        step = self.random.choice(["add.s64 %rd20, %rd20, 8;", "add.s64 %rd20, %rd20, %rd21;", ""])
        return [
            f"mov.u32 {counter}, 0;", f"{label}:", *self.body(depth - 1), step, f"add.s32 {counter}, {counter}, 1;",
            f"setp.lt.u32 %p8, {counter}, {bound};", f"@%p8 bra {label};",
        ]  # fmt: skip

    def body(self, depth):
        lines = []
        for _ in range(self.random.randint(3, 9)):
            choice = self.random.random()
            if choice < 0.70:
                lines += self.load()
            elif choice < 0.77:
                lines += self.store()
            elif choice < 0.83:
                lines += ["add.s64 %rd20, %rd20, 4;"]
            elif depth and choice < 0.94:
                lines += self.skip(depth)
            elif depth and self.labels < 8:
                lines += self.loop(depth)
        return lines

    def text(self):
        setup = """
        mov.f32 %f30, 0f3F800000; mov.u64 %rd20, %rd4; and.b32 %r31, %r4, 3; add.s32 %r30, %r31, 1;
        mul.wide.u32 %rd21, %r31, 4;
        and.b32 %r31, %r1, 1; setp.eq.u32 %p6, %r31, 0; and.b32 %r31, %r4, 1; setp.eq.u32 %p7, %r31, 0;
        add.s32 %r31, %r1, -3; setp.lt.s32 %p5, %r5, %r31;
        """
        registers = "".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(1, 21))
        body = setup + registers + "\n".join(self.body(3)) + "\nst.global.f32 [%rd5+2048], %f30;"
        if self.random.random() < 0.5:
            return kernel(body)
        # Rows of threads work on rows of the arrays, which a warp of several rows straddles.
        rows = "mad.lo.s32 %r5, %r2, %r3, %r4; mov.u32 %r32, %tid.y; mad.lo.s32 %r5, %r32, 9, %r5;"
        return kernel(body, index=INDEX.replace("mad.lo.s32 %r5, %r2, %r3, %r4;", rows))


@pytest.mark.parametrize("start", range(0, 30, 10))
def test_random_kernels_keep_their_results(start):
    replaced = 0
    for seed in range(start, start + 10):
        before = Generator(seed).text()
        after, report = shuffled(before)
        replaced += len(deltas(report)) + len(report.reuses)
        if after == before:
            continue
        for n in (30, 64):
            for block in BLOCKS:
                for aliased in (False, True):
                    if aliased and ".nc" in before:
                        continue
                    launch = {"n": n, "grid": (1, 1, 1), "block": block, "aliased": aliased, "seed": seed, "size": 4096}
                    assert run(before, **launch) == run(after, **launch), (seed, launch)
    assert replaced > 20
