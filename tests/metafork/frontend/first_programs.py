"""Short programs as people write them first."""

SCALE = "void scale(int n, int B, float x[n])\n{\n"
LOOP = "    meta_for (int i = 0; i < n; i++)\n"
OPEN = "  meta_schedule meta_block(B) {\n"
MARKED = "  meta_schedule meta_block(B) {\n    meta_for (int i = 0; i < n; i++)\n      x[i] = 2 * x[i];\n  }\n"
MIX = "static unsigned mix(unsigned v) { v ^= v >> 16; v *= 0x7feb352du; v ^= v >> 15; return v; }\n"


def one(code, head=SCALE):
    """A function whose threads run the code, one for each element."""
    return head + OPEN + LOOP.replace("++)", "++) {") + f"      {code}\n    }}\n  }}\n}}\n"


def two(code, between="", head=SCALE):
    """A function with a loop of blocks and one of threads."""
    return (
        head
        + f"  meta_schedule {{\n    meta_for (int b = 0; b < n / B; b++) {{\n      {between}\n"
        + f"      meta_for (int u = 0; u < B; u++) {{\n        {code}\n      }}\n    }}\n  }}\n}}\n"
    )


def typed(type_, code="x[i] = 1;", top=""):
    """A function with an array of a type."""
    return one(code, f"{top}void scale(int n, int B, {type_})\n{{\n")
