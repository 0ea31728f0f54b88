// What return probes may stumble over: recursion on the register stack alone, functions that are
// left by a jump, a second pair of stacks, tail calls, arguments on the stack, a function that
// keeps its return address in b6, a return to an instruction whose predicate is false.
// Every result goes to the output, 8 bytes each.
	.explicit
	.bss
	.align 16
out:	.skip 1024
buffer:	.skip 64
here:	.skip 64
there:	.skip 64
stack2:	.skip 0x4000
top2:	.skip 64
store2:	.skip 0x4000
	.sdata
	.align 8
at:	data8 out

	.text
	.macro address register, name
	addl \register=@gprel(\name),gp
	.endm
	.macro emitted value
	;;
	mov out0=\value
	br.call.sptk.many b0=emit
	;;
	.endm
	.macro leave
	mov ar.pfs=loc0
	mov b0=loc1
	;;
	br.ret.sptk.many b0
	;;
	.endm

	.global _start
	.proc _start
_start:
	.prologue
	.save rp, r0
	alloc loc0=ar.pfs,0,2,8,0
	.body
.Lhere:	mov r3=ip
	movl gp=@gprel(.Lhere)
	;;
	sub gp=r3,gp
	br.call.sptk.many b0=main
	;;
	mov out0=r8
	br.call.sptk.many b0=quit
	;;
	break.i 0
	;;
	.endp _start

	.global main
	.proc main
main:
	.prologue
	.save ar.pfs, r32
	alloc loc0=ar.pfs,0,4,8,0
	.save rp, loc1
	mov loc1=b0
	.fframe 48
	adds sp=-48,sp
	.body
	;;
	mov out0=200
	br.call.sptk.many b0=sum
	;;
	emitted r8
	mov out0=3
	br.call.sptk.many b0=jumper
	;;
	emitted r8
	br.call.sptk.many b0=switcher
	;;
	emitted r8
	mov out0=20
	br.call.sptk.many b0=tail
	;;
	emitted r8
	mov out0=5
	br.call.sptk.many b0=frameless
	;;
	emitted r8
	adds r14=16,sp
	adds r15=24,sp
	mov r16=80
	mov r17=90
	;;
	st8 [r14]=r16
	st8 [r15]=r17
	mov out0=1
	mov out7=8
	br.call.sptk.many b0=ten
	;;
	emitted r8
	mov r14=5
	;;
	setf.sig f8=r14
	;;
	fcvt.xf f8=f8
	br.call.sptk.many b0=half
	;;
	getf.d r14=f8
	emitted r14
	br.call.sptk.many b0=predicated
	;;
	emitted r8
	mov r8=7
	.restore sp
	adds sp=48,sp
	leave
	.endp main

// sum(n): n + ... + 1, on the register stack alone
	.global sum
	.proc sum
sum:
	.prologue
	.save ar.pfs, r33
	alloc loc0=ar.pfs,1,2,1,0
	.save rp, loc1
	mov loc1=b0
	.body
	;;
	cmp.eq p6,p7=0,in0
	mov r8=0
	;;
	(p7) adds out0=-1,in0
	(p7) br.call.sptk.many b0=sum
	;;
	add r8=r8,in0
	leave
	.endp sum

// jumper(n): leaves three calls by a jump, again and again; how often it came back
	.global jumper
	.proc jumper
jumper:
	.prologue
	.save ar.pfs, r33
	alloc loc0=ar.pfs,1,3,2,0
	.save rp, loc1
	mov loc1=b0
	.body
	;;
	mov loc2=0
	;;
.Lagain: address out0,buffer
	br.call.sptk.many b0=set_jump
	;;
	cmp.eq p6,p7=loc2,in0
	adds loc2=1,loc2
	;;
	(p7) mov out0=3
	(p7) br.call.sptk.many b0=dive
	;;
	mov r8=loc2
	leave
	.endp jumper

	.global dive
	.proc dive
dive:
	.prologue
	.save ar.pfs, r33
	alloc loc0=ar.pfs,1,2,2,0
	.save rp, loc1
	mov loc1=b0
	.body
	;;
	cmp.eq p6,p7=0,in0
	;;
	(p7) adds out0=-1,in0
	(p7) br.call.sptk.many b0=dive
	;;
	address out0,buffer
	br.call.sptk.many b0=jump
	;;
	break.i 0
	;;
	.endp dive

// set_jump(where): remembers the frame of its caller
	.global set_jump
	.proc set_jump
set_jump:
	.prologue
	.body
	flushrs
	;;
	mov r14=b0
	mov.i r15=ar.pfs
	mov.m r16=ar.bsp
	adds r17=8,r32
	adds r18=16,r32
	adds r19=24,r32
	;;
	st8 [r32]=r14
	st8 [r17]=r15
	st8 [r18]=r16
	st8 [r19]=sp
	mov r8=0
	br.ret.sptk.many b0
	;;
	.endp set_jump

// jump(where): goes on there once more
	.global jump
	.proc jump
jump:
	.prologue
	.body
	adds r17=8,r32
	adds r18=16,r32
	adds r19=24,r32
	ld8 r14=[r32]
	;;
	ld8 r15=[r17]
	ld8 r16=[r18]
	ld8 r20=[r19]
	flushrs
	;;
	mov.m ar.rsc=0
	;;
	mov.m ar.bspstore=r16
	;;
	mov.m ar.rnat=r0
	;;
	mov.m ar.rsc=15
	mov b6=r14
	mov.i ar.pfs=r15
	mov sp=r20
	mov r8=1
	;;
	br.ret.sptk.many b6
	;;
	.endp jump

// switcher(): two functions on stacks of their own take turns
	.global switcher
	.proc switcher
switcher:
	.prologue
	.save ar.pfs, r32
	alloc loc0=ar.pfs,0,4,2,0
	.save rp, loc1
	mov loc1=b0
	.body
	;;
	address r14,there
	address r15,top2
	address r16,store2
	movl r17=@gprel(other)
	;;
	add r17=r17,gp
	adds r18=8,r14
	adds r19=16,r14
	adds r20=24,r14
	;;
	st8 [r14]=r17
	st8 [r18]=r0
	st8 [r19]=r16
	st8 [r20]=r15
	mov loc2=0
	mov loc3=3
	;;
.Lturns: br.call.sptk.many b0=turn
	;;
	add loc2=loc2,r8
	adds loc3=-1,loc3
	;;
	cmp.ne p6,p0=0,loc3
	;;
	(p6) br.cond.sptk .Lturns
	;;
	mov r8=loc2
	leave
	.endp switcher

// turn(): to the other stacks and back; what was found there
	.global turn
	.proc turn
turn:
	.prologue
	.save ar.pfs, r32
	alloc loc0=ar.pfs,0,2,2,0
	.save rp, loc1
	mov loc1=b0
	.body
	;;
	address out0,here
	address out1,there
	br.call.sptk.many b0=switch
	;;
	mov r8=r9
	leave
	.endp turn

// switch(here, there): r9 is passed
	.global switch
	.proc switch
switch:
	.prologue
	.save ar.pfs, r34
	alloc loc0=ar.pfs,2,3,1,0
	.save rp, loc1
	mov loc1=b0
	.body
	;;
	mov loc2=r9
	mov out0=in0
	br.call.sptk.many b0=set_jump
	;;
	cmp.eq p6,p7=0,r8
	mov r9=loc2
	;;
	(p6) mov out0=in1
	(p6) br.call.sptk.many b0=pass
	;;
	address r14,buffer
	;;
	ld8 r9=[r14]
	leave
	.endp switch

// pass(there): a jump that leaves r9 in memory
	.global pass
	.proc pass
pass:
	.prologue
	.save ar.pfs, r33
	alloc loc0=ar.pfs,1,2,1,0
	.save rp, loc1
	mov loc1=b0
	.body
	;;
	address r14,buffer
	;;
	st8 [r14]=r9
	mov out0=in0
	br.call.sptk.many b0=jump
	;;
	break.i 0
	;;
	.endp pass

// the other stacks' function: sums of its own
	.global other
	.proc other
other:
	.prologue
	.save rp, r0
	alloc r34=ar.pfs,0,4,2,0
	.body
	mov r35=1
	;;
.Lround: mov out0=r35
	br.call.sptk.many b0=sum
	;;
	mov r9=r8
	adds r35=1,r35
	address out0,there
	address out1,here
	br.call.sptk.many b0=switch
	;;
	br.cond.sptk .Lround
	;;
	.endp other

// tail(n): twice() in its place
	.global tail
	.proc tail
tail:
	.prologue
	.body
	alloc r14=ar.pfs,1,0,0,0
	;;
	adds r32=1,r32
	br.cond.sptk.many twice
	;;
	.endp tail

	.global twice
	.proc twice
twice:
	.prologue
	.body
	add r8=r32,r32
	br.ret.sptk.many b0
	;;
	.endp twice

// frameless(n): the callee's frame begins where its own does, on either stack
	.global frameless
	.proc frameless
frameless:
	.prologue
	.save ar.pfs, r20
	mov r20=ar.pfs
	.save rp, r21
	mov r21=b0
	.body
	;;
	mov b6=r21
	;;
	br.call.sptk.many b0=twice
	;;
	adds r8=1,r8
	mov ar.pfs=r20
	br.ret.sptk.many b6
	;;
	.endp frameless

// ten(...): of its arguments the eighth, the ninth and the tenth; writes over them
	.global ten
	.proc ten
ten:
	.prologue
	.body
	adds r14=16,sp
	adds r15=24,sp
	;;
	ld8 r16=[r14]
	ld8 r17=[r15]
	;;
	shladd r8=r16,2,r17
	st8 [r14]=r0
	st8 [r15]=r0
	;;
	shladd r8=r39,4,r8
	br.ret.sptk.many b0
	;;
	.endp ten

// half(x)
	.global half
	.proc half
half:
	.prologue
	.body
	fadd f9=f1,f1
	;;
	frcpa.s0 f9,p6=f1,f9
	;;
	fmpy.d f8=f8,f9
	br.ret.sptk.many b0
	;;
	.endp half

// predicated(): what its callee returns to is not executed for p2 at first, and is then
	.global predicated
	.proc predicated
predicated:
	.prologue
	.save ar.pfs, r32
	alloc loc0=ar.pfs,0,5,1,0
	.save rp, loc1
	mov loc1=b0
	.save pr, loc2
	mov loc2=pr
	.body
	mov loc3=0
	mov loc4=0
	;;
.Lonce:	cmp.lt p2,p3=1,loc4
	mov out0=4
	;;
	{ .bbb
	nop.b 0
	nop.b 0
	br.call.sptk.many b0=twice
	;;
	}
predicated_return:
	{ .mii
	(p2) adds loc3=100,loc3
	adds loc4=1,loc4
	nop.i 0
	;;
	}
	add loc3=loc3,r8
	cmp.gt p6,p0=4,loc4
	;;
	(p6) br.cond.sptk .Lonce
	;;
	mov r8=loc3
	mov pr=loc2,-1
	leave
	.endp predicated

// emit(x)
	.global emit
	.proc emit
emit:
	.prologue
	.body
	address r14,at
	;;
	ld8 r15=[r14]
	;;
	st8 [r15]=r32,8
	;;
	st8 [r14]=r15
	br.ret.sptk.many b0
	;;
	.endp emit

// quit(code): write all and exit
	.global quit
	.proc quit
quit:
	.prologue
	alloc r35=ar.pfs,1,3,3,0
	.body
	address r14,at
	address out1,out
	;;
	ld8 r14=[r14]
	mov out0=1
	mov r15=1027
	;;
	sub out2=r14,out1
	;;
	break.m 0x100000
	;;
	mov out0=in0
	mov r15=1025
	;;
	break.m 0x100000
	;;
	.endp quit
