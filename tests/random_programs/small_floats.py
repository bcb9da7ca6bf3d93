"""Random functions whose arrays are of 16-bit floating types, and which add to floating-point elements in any order."""

from tests.random_programs.constructs import ConstructGenerator

SMALL = ("_Float16", "__half", "half", "__bf16", "__nv_bfloat16")


class SmallFloatGenerator(ConstructGenerator):
    """Functions of that kind with small numbers in memory where others have a ``float``, and scatter."""

    def array(self, stem: str, element: str, extents: list[str], const: bool) -> str:
        if element == "float" and stem != "h" and self.random.random() < 0.6:
            element = self.random.choice(SMALL)
        return super().array(stem, element, extents, const)

    def statements(self, more: tuple[str, ...] = (), accumulate: bool = False) -> list[str]:
        lines = super().statements(more, accumulate)
        r = self.random
        if r.random() < 0.4:
            before, value = self.value(False, 1)
            name = self.array("h", r.choice(("float", "double")), ["5"], const=False)
            update = f"meta_atomic {name}[({r.choice(('p0', 'g0', value))}) & 3] {r.choice('+-')}= ({value}) / 7.0f;"
            lines += [*before, update if r.random() < 0.7 else f"if ({self.condition()}) {update}"]
        if r.random() < 0.3:
            before, value = self.value(True, 1)
            name = self.fresh("o")
            place = self.output(True)[1]
            lines += [*before, f"{{ {r.choice(SMALL)} {name} = {value};", f"  {place} = {name} * 0.5f; }}"]
        return lines
