"""Random functions whose threads all read the same elements in a loop, enough of them for strips in shared memory."""

import re

from tests.random_programs.generator import FLOATING, INTEGER, Generator


class StripGenerator(Generator):
    """Functions of the plain kind with sums over arrays that every thread walks from one end to the other."""

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(seed, name)
        if self.random.random() < 0.8:
            self.granular = None
            self.index_type = "int"

    def nest(self) -> list[str]:
        return self.phase(self.statements(), 2) if self.random.random() < 0.7 else super().nest()

    def read(self, floating: bool) -> str:
        r = self.random
        if r.random() < 0.4:
            return super().read(floating)
        self.uses_m = True
        element = r.choice(FLOATING if floating and r.random() < 0.8 else INTEGER)
        extents, place = r.choice(((["m"], "[z]"), (["m + 1"], "[z + 1]"), (["m", "3"], f"[z][{r.randrange(3)}]")))
        name = self.array("a", element, extents, const=True)
        axis = r.randrange(self.rank)
        own = r.choice((f"p{axis}", f"u{axis}", f"g{axis}", f"(p{axis} * 2 - u0)"))
        x = self.masked(f"{name}{place}", element)
        trips = r.choice(("m", "m", "m", "m - 1"))
        if floating:
            return f"@loop:z:{trips}:({x} - {own}) / ({x} * {x} + 1.5f)"
        return f"@loop:z:{trips}:(((int){x} + {own} % 5) * 3 / (((int){x} & 3) + 1) & 31)"

    def text(self) -> str:
        text = super().text()
        return re.sub(r"(meta_schedule) cache\([^)]*\)", r"\1", text) if self.random.random() < 0.9 else text
