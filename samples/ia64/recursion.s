// A deep and a bushy recursion, as recursion.c: each activation is a frame of the register stack.
	.include "rt.s"

	.data
.Lfactorial:	stringz "factorial(20) = "
.Lfibonacci:	stringz "\nfibonacci(15) = "
.Lackermann:	stringz "\nackermann(2, 3) = "
.Lnewline:	stringz "\n"

	.text
// unsigned long factorial(unsigned long n)
	.global factorial
	.proc factorial
factorial:
	.prologue
	.save ar.pfs, r33
	alloc loc0=ar.pfs,1,2,1,0
	.save rp, loc1
	mov loc1=b0
	.body
	mov r8=1
	cmp.geu p6,p0=1,in0
	(p6) br.cond.spnt .Lone
	;;
	adds out0=-1,in0
	call factorial
	setf.sig f6=r8
	setf.sig f7=in0
	;;
	xmpy.l f6=f6,f7
	;;
	getf.sig r8=f6
	;;
.Lone:	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp factorial

// unsigned long fibonacci(unsigned long n)
	.global fibonacci
	.proc fibonacci
fibonacci:
	.prologue
	.save ar.pfs, r33
	alloc loc0=ar.pfs,1,3,1,0
	.save rp, loc1
	mov loc1=b0
	.body
	mov r8=in0
	cmp.gtu p6,p0=2,in0
	(p6) br.cond.spnt .Lleaf
	;;
	adds out0=-1,in0
	call fibonacci
	mov loc2=r8
	adds out0=-2,in0
	call fibonacci
	add r8=r8,loc2
.Lleaf:	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp fibonacci

// unsigned long ackermann(unsigned long m, unsigned long n)
	.global ackermann
	.proc ackermann
ackermann:
	.prologue
	.save ar.pfs, r34
	alloc loc0=ar.pfs,2,2,2,0
	.save rp, loc1
	mov loc1=b0
	.body
	adds r8=1,in1
	cmp.eq p6,p0=0,in0
	(p6) br.cond.spnt .Lbase
	;;
	cmp.eq p6,p7=0,in1
	;;
	(p6) mov r8=1
	(p6) br.cond.spnt .Louter
	;;
	mov out0=in0
	adds out1=-1,in1
	call ackermann
.Louter:
	adds out0=-1,in0
	mov out1=r8
	call ackermann
.Lbase:	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp ackermann

	.global main
	.proc main
main:
	.prologue
	.save ar.pfs, r32
	alloc loc0=ar.pfs,0,2,2,0
	.save rp, loc1
	mov loc1=b0
	.body
	addl out0=@gprel(.Lfactorial),gp
	call print_text
	mov out0=20
	call factorial
	mov out0=r8
	call print_number
	addl out0=@gprel(.Lfibonacci),gp
	call print_text
	mov out0=15
	call fibonacci
	mov out0=r8
	call print_number
	addl out0=@gprel(.Lackermann),gp
	call print_text
	mov out0=2
	mov out1=3
	call ackermann
	mov out0=r8
	call print_number
	addl out0=@gprel(.Lnewline),gp
	call print_text
	mov r8=0
	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp main
