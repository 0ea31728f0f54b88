/* What the vDSOs of all architectures have in common.

   In front of the image stand pages of data. The first begins with two words (`engine.linux.vdso`):
   what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, and nanoseconds of a tick of the coarse clocks. */

/* Bits of clocks: REALTIME 0, MONOTONIC 1, RAW 4, the coarse ones 5 and 6, BOOTTIME 7, TAI 11. */
#define CLOCKS		0x8f3
#define SINCE_1970	0x821
#define COARSE		0x060
#define LAST_CLOCK	11

	.macro	function name, weak
	.text
	.balign	16
	.globl	\name
	.type	\name, @function
	.ifnb	\weak
	.weak	\weak
	.set	\weak, \name
	.endif
	.cfi_startproc
\name:
	.endm

	.macro	end name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* The version of Linux (LINUX_VERSION_CODE, 6.18.0), as arch/x86/entry/vdso/note.S has it. */
	.section	.note.Linux, "a", @note
	.balign	4
	.long	2f - 1f, 4f - 3f, 0
1:	.asciz	"Linux"
2:	.balign	4
3:	.long	6 << 16 | 18 << 8
4:
	.section	.note.GNU-stack, "", @progbits
