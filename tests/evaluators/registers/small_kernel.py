"""PTX of a small kernel with a branch."""

from tests.evaluators.registers.ptx_modules import ptx_module

PTX = ptx_module("""
	ld.param.b64 	%rd1, [k_param_0];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r9, %ctaid.x;
	mul.wide.s32 	%rd2, %r1, 4;
	add.s64 	%rd3, %rd1, %rd2;
	ld.global.b32 	%r2, [%rd3];
	st.shared.b32 	[%rd5], %r2;
	ld.global.b32 	%r3, [%rd3+4];
	add.s32 	%r4, %r2, %r3;
	setp.lt.s32 	%p1, %r4, %r9;
	@%p1 bra 	$L__BB0_2;
	div.rn.f32 	%r5, %r4, %r3;
	st.global.b32 	[%rd3], %r5;
$L__BB0_2:
	ret;
""")
