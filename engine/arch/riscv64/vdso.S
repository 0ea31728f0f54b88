/*
 * The vDSO of RISC-V: clocks without a system call, and where signal handlers return to
 * (arch/riscv/kernel/vdso).
 *
 * The time register counts nanoseconds of CLOCK_MONOTONIC here. In front of the image stands
 * a page with two words: what CLOCK_REALTIME is ahead of that, and nanoseconds of a tick.
 * `engine.linux.vdso` maps both; `make -C engine/arch` builds the image.
 */
#include "vdso.h"

	.hidden	vdso_data

	/* Nanoseconds of CLOCK_MONOTONIC to a2, the page with the words to a6. */
	.macro	now
	lla	a6, vdso_data
	rdtime	a2
	.endm

	/* Divide a2 by a3: the quotient to a4, the rest to a5. */
	.macro	divide
	divu	a4, a2, a3
	remu	a5, a2, a3
	.endm

	/* Go to `elsewhere` unless the clock in a0 is one of a set of bits; changes a7. */
	.macro	unless set, elsewhere
	li	a7, \set
	srlw	a7, a7, a0
	andi	a7, a7, 1
	beqz	a7, \elsewhere
	.endm

	.macro	known elsewhere
	sext.w	a0, a0
	li	a7, LAST_CLOCK
	bgtu	a0, a7, \elsewhere
	unless	CLOCKS, \elsewhere
	.endm

	.macro	call number
	li	a7, \number
	ecall
	ret
	.endm

function __vdso_clock_gettime
	known	3f
	now
	unless	SINCE_1970, 1f
	ld	a3, 0(a6)
	add	a2, a2, a3
1:	unless	COARSE, 2f
	ld	a3, 8(a6)
	divide
	mul	a2, a4, a3
2:	li	a3, 1000000000
	divide
	sd	a4, 0(a1)
	sd	a5, 8(a1)
	li	a0, 0
	ret
3:	call	113
end __vdso_clock_gettime

function __vdso_gettimeofday
	beqz	a0, 1f
	now
	ld	a3, 0(a6)
	add	a2, a2, a3
	li	a3, 1000000000
	divide
	li	a3, 1000
	divu	a5, a5, a3
	sd	a4, 0(a0)
	sd	a5, 8(a0)
1:	beqz	a1, 2f
	sd	zero, 0(a1)
2:	li	a0, 0
	ret
end __vdso_gettimeofday

function __vdso_clock_getres
	known	3f
	beqz	a1, 2f
	li	a2, 1
	unless	COARSE, 1f
	lla	a6, vdso_data
	ld	a2, 8(a6)
1:	sd	zero, 0(a1)
	sd	a2, 8(a1)
2:	li	a0, 0
	ret
3:	call	114
end __vdso_clock_getres

function __vdso_getcpu
	call	168
end __vdso_getcpu

function __vdso_flush_icache
	call	259
end __vdso_flush_icache

function __vdso_riscv_hwprobe
	call	258
end __vdso_riscv_hwprobe

	.globl	__vdso_rt_sigreturn
	.type	__vdso_rt_sigreturn, @function
	.balign	4
	.cfi_startproc
	.cfi_signal_frame
__vdso_rt_sigreturn:
	li	a7, 139
	ecall
	.cfi_endproc
	.size	__vdso_rt_sigreturn, . - __vdso_rt_sigreturn
