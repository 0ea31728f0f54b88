// System calls by the dozen: words through a pipe, a heap that grows, errors in r10.
	.include "rt.s"

	ROUNDS = 40

	.data
.Lpipe:		stringz "through the pipe "
.Lheap:		stringz ", heap grew by "
.Lerror:	stringz ", lseek says "
.Lnewline:	stringz "\n"

	.bss
	.align 16
ends:	.skip 16
word:	.skip 16

	.text
// long transfer(int *pipe, long value): what comes out when `value` has gone in
	.global transfer
	.proc transfer
transfer:
	.prologue
	.save ar.pfs, r34
	alloc loc0=ar.pfs,2,4,3,0
	.save rp, loc1
	mov loc1=b0
	.body
	addl loc2=@gprel(word),gp
	adds r14=4,in0
	;;
	st8 [loc2]=in1
	ld4 out0=[r14]
	mov out1=loc2
	mov out2=8
	call sys_write
	mov loc3=r8
	st8 [loc2]=r0
	;;
	ld4 out0=[in0]
	mov out1=loc2
	mov out2=loc3
	call sys_read
	ld8 r8=[loc2]
	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp transfer

// long pump(int *pipe, long rounds): the sum of what has come out
	.global pump
	.proc pump
pump:
	.prologue
	.save ar.pfs, r34
	alloc loc0=ar.pfs,2,3,2,0
	.save rp, loc1
	mov loc1=b0
	.body
	mov loc2=0
	;;
.Lround:
	mov out0=in0
	mov out1=in1
	call transfer
	add loc2=loc2,r8
	adds in1=-1,in1
	;;
	cmp.ne p6,p0=0,in1
	(p6) br.cond.sptk .Lround
	;;
	mov r8=loc2
	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp pump

// long grow(long size): bytes by which the heap has grown
	.global grow
	.proc grow
grow:
	.prologue
	.save ar.pfs, r33
	alloc loc0=ar.pfs,1,3,1,0
	.save rp, loc1
	mov loc1=b0
	.body
	mov out0=0
	call sys_brk
	mov loc2=r8
	add out0=r8,in0
	call sys_brk
	sub r8=r8,loc2
	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp grow

	.global main
	.proc main
main:
	.prologue
	.save ar.pfs, r32
	alloc loc0=ar.pfs,0,3,3,0
	.save rp, loc1
	mov loc1=b0
	.body
	addl loc2=@gprel(ends),gp
	;;
	mov out0=loc2
	mov out1=0
	call sys_pipe2#
	addl out0=@gprel(.Lpipe),gp
	call print_text
	mov out0=loc2
	mov out1=ROUNDS
	call pump
	mov out0=r8
	call print_number
	addl out0=@gprel(.Lheap),gp
	call print_text
	mov out0=12345
	call grow
	mov out0=r8
	call print_number
	addl out0=@gprel(.Lerror),gp
	call print_text
	ld4 out0=[loc2]
	mov out1=0
	mov out2=0
	call sys_lseek
	sub out0=r0,r8
	call print_number
	addl out0=@gprel(.Lnewline),gp
	call print_text
	mov r8=0
	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp main
