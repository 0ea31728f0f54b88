/*
 * The vDSO of x86-64: clocks without a system call (arch/x86/entry/vdso/vclock_gettime.c).
 *
 * The time stamp counter counts nanoseconds of CLOCK_MONOTONIC here. In front of the image stands
 * a page with two words: what CLOCK_REALTIME is ahead of that, and nanoseconds of a tick.
 * `engine.linux.vdso` maps both; `make -C engine/arch` builds the image.
 */
#include "vdso.h"

	.hidden	vdso_data
#define AHEAD	vdso_data(%rip)
#define TICK	vdso_data+8(%rip)

	/* Nanoseconds of CLOCK_MONOTONIC to rax; changes rdx. */
	.macro	now
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	.endm

	/* Divide rax by a number: the quotient to rax, the rest to rdx; changes r9. */
	.macro	divide by
	xor	%edx, %edx
	mov	\by, %r9
	div	%r9
	.endm

	/* Go to `elsewhere` unless the clock in ecx is one of a set of bits; changes r8. */
	.macro	unless set, elsewhere
	mov	$\set, %r8d
	shr	%cl, %r8d
	test	$1, %r8b
	je	\elsewhere
	.endm

	.macro	known elsewhere
	mov	%edi, %ecx
	cmp	$LAST_CLOCK, %ecx
	ja	\elsewhere
	unless	CLOCKS, \elsewhere
	.endm

function __vdso_clock_gettime, clock_gettime
	known	3f
	now
	unless	SINCE_1970, 1f
	add	AHEAD, %rax
1:	unless	COARSE, 2f
	mov	%rax, %r10
	divide	TICK
	sub	%rdx, %r10
	mov	%r10, %rax
2:	divide	$1000000000
	mov	%rax, (%rsi)
	mov	%rdx, 8(%rsi)
	xor	%eax, %eax
	ret
3:	mov	$228, %eax
	syscall
	ret
end __vdso_clock_gettime

function __vdso_gettimeofday, gettimeofday
	test	%rdi, %rdi
	je	1f
	now
	add	AHEAD, %rax
	divide	$1000000000
	mov	%rax, (%rdi)
	mov	%rdx, %rax
	divide	$1000
	mov	%rax, 8(%rdi)
1:	test	%rsi, %rsi
	je	2f
	movq	$0, (%rsi)
2:	xor	%eax, %eax
	ret
end __vdso_gettimeofday

function __vdso_time, time
	now
	add	AHEAD, %rax
	divide	$1000000000
	test	%rdi, %rdi
	je	1f
	mov	%rax, (%rdi)
1:	ret
end __vdso_time

function __vdso_clock_getres, clock_getres
	known	3f
	test	%rsi, %rsi
	je	2f
	mov	$1, %eax
	unless	COARSE, 1f
	mov	TICK, %rax
1:	movq	$0, (%rsi)
	mov	%rax, 8(%rsi)
2:	xor	%eax, %eax
	ret
3:	mov	$229, %eax
	syscall
	ret
end __vdso_clock_getres

	/* Linux has the processor in a segment's limit; the guest's depends on the thread. */
function __vdso_getcpu, getcpu
	mov	$309, %eax
	syscall
	ret
end __vdso_getcpu
