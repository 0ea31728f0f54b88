/*
 * The vDSO of AArch64: clocks without a system call, and where signal handlers return to
 * (arch/arm64/kernel/vdso).
 *
 * The virtual counter counts nanoseconds of CLOCK_MONOTONIC here. In front of the image stands
 * a page with two words: what CLOCK_REALTIME is ahead of that, and nanoseconds of a tick.
 * `engine.linux.vdso` maps both; `make -C engine/arch` builds the image.
 */
#include "vdso.h"

	.hidden	vdso_data

	/* Nanoseconds of CLOCK_MONOTONIC to x2, the page with the words to x6. */
	.macro	now
	adr	x6, vdso_data
	mrs	x2, cntvct_el0
	.endm

	/* Divide x2 by x3: the quotient to x4, the rest to x5. */
	.macro	divide
	udiv	x4, x2, x3
	msub	x5, x4, x3, x2
	.endm

	.macro	second to
	mov	\to, #0xca00
	movk	\to, #0x3b9a, lsl #16
	.endm

	/* Go to `elsewhere` unless the clock in w0 is one of a set of bits; changes w7. */
	.macro	unless set, elsewhere
	mov	w7, #\set
	lsr	w7, w7, w0
	tbz	w7, #0, \elsewhere
	.endm

	.macro	known elsewhere
	cmp	w0, #LAST_CLOCK
	b.hi	\elsewhere
	unless	CLOCKS, \elsewhere
	.endm

function __kernel_clock_gettime
	known	3f
	now
	unless	SINCE_1970, 1f
	ldr	x3, [x6]
	add	x2, x2, x3
1:	unless	COARSE, 2f
	ldr	x3, [x6, #8]
	divide
	mul	x2, x4, x3
2:	second	x3
	divide
	stp	x4, x5, [x1]
	mov	x0, #0
	ret
3:	mov	x8, #113
	svc	#0
	ret
end __kernel_clock_gettime

function __kernel_gettimeofday
	cbz	x0, 1f
	now
	ldr	x3, [x6]
	add	x2, x2, x3
	second	x3
	divide
	mov	x2, #1000
	udiv	x5, x5, x2
	stp	x4, x5, [x0]
1:	cbz	x1, 2f
	str	xzr, [x1]
2:	mov	x0, #0
	ret
end __kernel_gettimeofday

function __kernel_clock_getres
	known	3f
	cbz	x1, 2f
	mov	x2, #1
	unless	COARSE, 1f
	adr	x6, vdso_data
	ldr	x2, [x6, #8]
1:	stp	xzr, x2, [x1]
2:	mov	x0, #0
	ret
3:	mov	x8, #114
	svc	#0
	ret
end __kernel_clock_getres

	/* Unwinders know it by its two instructions; Linux has no CFI for it, either, and the nop in
	   front so that they find nothing else by the return address less one. */
	.balign	16
	nop
	.globl	__kernel_rt_sigreturn
	.type	__kernel_rt_sigreturn, @notype
__kernel_rt_sigreturn:
	mov	x8, #139
	svc	#0
	.size	__kernel_rt_sigreturn, . - __kernel_rt_sigreturn
