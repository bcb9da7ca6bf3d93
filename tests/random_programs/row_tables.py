"""Random functions in which rows of arrays are found by tables of pointers."""

import re

from tests.random_programs.constructs import ConstructGenerator

_MATRIX = re.compile(r"((?:const )?(?!struct\b)[a-z ]+?) (\w+)\[([^\]]*)\]\[([^\]]*)\]$")


class TableGenerator(ConstructGenerator):
    """Functions of that kind whose schedules use some arrays of two dimensions through tables of their rows."""

    def __init__(self, seed: int, name: str) -> None:
        super().__init__(seed, name)
        if self.rank == 1:
            self.rank = 2
            self.forms.append(self.random.choice(("floor", "ceiling", "halo")))

    def text(self) -> str:
        text = super().text()
        opening, schedule = text.index("{\n"), text.index("meta_schedule")
        head, before, code = text[: opening + 2], text[opening + 2 : schedule], text[schedule:]
        for declared in self.arrays:
            found = _MATRIX.search(declared)
            if found is None or declared not in head or self.random.random() < 0.3:
                continue
            type_, name, rows, _ = found.groups()
            before += f"{type_} *{name}t[{rows} > 0 ? {rows} : 1];\n"
            before += f"  for (long i = 0; i < {rows}; i++) {name}t[i] = {name}[i];\n  "
            code = re.sub(rf"\b{name}\[", f"{name}t[", code)
            code = re.sub(rf"(cache\([^)]*?)\b{name}\b(?:, )?", r"\1", code).replace(", )", ")")
        return f"{head}{before}{code}"
