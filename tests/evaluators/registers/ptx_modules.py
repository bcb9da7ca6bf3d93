"""PTX modules around the body of one kernel."""

from metafork.evaluators.registers.code import PtxCode
from metafork.evaluators.registers.reading import read_code

_HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)
{
	.reg .pred 	%p<4>;
	.reg .b16 	%rs<10>;
	.reg .b32 	%r<300>;
	.reg .b64 	%rd<100>;
"""


def ptx_module(body: str) -> str:
    """Return the module whose kernel ``k`` has this body; registers as LLVM names them are declared."""
    return f"{_HEAD}{body}}}\n"


def code_of_body(body: str) -> PtxCode:
    """Return the code of the kernel with this body and a ``ret``."""
    return read_code(ptx_module(f"{body}\tret;\n"))
