// A fault in a rotated frame full of values: the handler loses all it may lose, on both stacks
// and then on the alternate one, and the frame goes on as if nothing had been. Exit code: the
// number of registers that came back wrong (or what the handler found wrong, from 200 on).
	.explicit
	.data
	.align 16
action:	data8 @fptr(handler)
flags:	data8 4				// SA_SIGINFO
	data8 0
stack:	data8 alternate
	data4 0
	data4 0
	data8 0x40000
ran:	data8 0
where:	data8 0				// whether the handler ran on the alternate stack
	.bss
	.align 16
alternate: .skip 0x40000

	.text
	.global _start
	.proc _start
_start:
	.prologue
	.save rp, r0
	alloc loc0=ar.pfs,0,3,4,0
	.body
.Lhere:	mov r3=ip
	movl gp=@gprel(.Lhere)
	;;
	sub gp=r3,gp
	;;
	addl loc1=@gprel(action),gp
	;;
	mov out0=11
	mov out1=loc1
	mov out2=0
	mov out3=8
	mov r15=1177			// rt_sigaction
	;;
	break.m 0x100000
	;;
	br.call.sptk.many b0=fault
	;;
	mov loc2=r8
	addl r14=@gprel(stack),gp
	;;
	mov out0=r14
	mov out1=0
	mov r15=1176			// sigaltstack
	;;
	break.m 0x100000
	;;
	addl r14=@gprel(flags),gp
	movl r15=0x08000004		// SA_ONSTACK
	;;
	st8 [r14]=r15
	mov out0=11
	mov out1=loc1
	mov out2=0
	mov out3=8
	mov r15=1177
	;;
	break.m 0x100000
	;;
	br.call.sptk.many b0=fault
	;;
	add out0=r8,loc2
	addl r14=@gprel(where),gp
	addl r15=@gprel(ran),gp
	;;
	ld8 r14=[r14]
	ld8 r15=[r15]
	;;
	cmp.ne p6,p0=1,r14		// the second handler only
	cmp.ne p7,p0=2,r15
	;;
	(p6) adds out0=100,out0
	;;
	(p7) adds out0=50,out0
	mov r15=1025
	;;
	break.m 0x100000
	;;
	.endp _start

	.macro differs register, value
	mov r3=\value
	;;
	cmp.ne p8,p0=\register,r3
	;;
	(p8) adds r8=1,r8
	;;
	.endm

// long fault(void): fault once and count what is different afterwards
	.proc fault
fault:
	.prologue
	.save ar.pfs, r42
	alloc r42=ar.pfs,0,20,0,8
	.save rp, r43
	mov r43=b0
	.save pr, r44
	mov r44=pr
	.save ar.lc, r45
	mov r45=ar.lc
	mov r46=gp
	.body
	;;
	// two and a half rounds: the rotating registers are rotated by 3
	mov ar.lc=2
	mov ar.ec=1
	mov pr.rot=0
	;;
.Lturn:	adds r32=1,r0
	br.ctop.sptk.few .Lturn
	;;
	.irp n, 32,33,34,35,36,37,38,39,40,41,47,48,49,50,51
	mov r\n=0x100+\n
	.endr
	.irp n, 2,8,9,10,11,14,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	mov r\n=0x200+\n
	.endr
	;;
	.irp n, 6,7,8,9,10,11,12,13,14,15,32,33,34,100,127
	setf.sig f\n=r2
	;;
	adds r2=1,r2
	;;
	.endr
	mov r3=0x7777
	mov r2=0x202
	;;
	mov ar.ccv=r3
	mov b6=r43
	mov b7=r43
	mov ar.lc=9
	;;
	ld8.s r15=[r0]			// a NaT
	cmp.eq p6,p7=r0,r0
	cmp.eq p20,p21=r0,r0
	cmp.eq p62,p63=r0,r0
	;;
	{ .mii
	ld8 r3=[r0]			// the fault
	nop.i 0
	nop.i 0
	;;
	}
	mov r1=r46
	mov r47=r8			// the counter comes to r8
	mov r8=0
	;;
	(p7) adds r8=1,r8
	;;
	(p21) adds r8=1,r8
	;;
	(p63) adds r8=1,r8
	;;
	tnat.nz p9,p10=r15
	;;
	(p10) adds r8=1,r8
	;;
	differs r47, 0x208
	.irp n, 32,33,34,35,36,37,38,39,40,41,48,49,50,51
	differs r\n, 0x100+\n
	.endr
	.irp n, 2,9,10,11,14,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	differs r\n, 0x200+\n
	.endr
	mov r47=0x202
	;;
	.irp n, 6,7,8,9,10,11,12,13,14,15,32,33,34,100,127
	getf.sig r48=f\n
	;;
	cmp.ne p8,p0=r47,r48
	adds r47=1,r47
	;;
	(p8) adds r8=1,r8
	;;
	.endr
	mov r48=ar.ccv
	mov r49=b6
	mov r50=b7
	;;
	differs r48, 0x7777
	mov r48=ar.lc
	cmp.ne p8,p0=r49,r43
	;;
	(p8) adds r8=1,r8
	cmp.ne p8,p0=r50,r43
	;;
	(p8) adds r8=1,r8
	;;
	differs r48, 9
	mov ar.lc=r45
	mov pr=r44,-1
	mov b0=r43
	mov ar.pfs=r42
	;;
	br.ret.sptk.many b0
	.endp fault

// void handler(int signal, siginfo_t *info, struct sigcontext *context)
	.proc handler
handler:
	.prologue
	.save ar.pfs, r36
	alloc r36=ar.pfs,3,4,2,0
	.save rp, r37
	mov r37=b0
	mov r38=ar.lc
	.body
	;;
	ld4 r14=[r33]			// si_signo
	adds r15=8,r33
	adds r16=16,r33
	adds r17=32,r33
	;;
	ld4 r15=[r15]			// si_code
	ld8 r16=[r16]			// si_addr
	ld8 r17=[r17]			// si_isr: a read in slot 0
	movl r18=0x400000000
	;;
	cmp.ne p6,p0=11,r14
	cmp.ne p7,p0=1,r15
	cmp.ne p8,p0=r0,r16
	cmp.ne p9,p0=r17,r18
	cmp.ne p10,p0=11,r32
	;;
	(p6) br.cond.spnt .Lwrong
	(p7) br.cond.spnt .Lwrong
	(p8) br.cond.spnt .Lwrong
	;;
	(p9) br.cond.spnt .Lwrong
	(p10) br.cond.spnt .Lwrong
	;;
	addl r14=@gprel(ran),gp
	addl r16=@gprel(alternate),gp
	adds r17=40,r34			// sc_ip: behind the fault
	;;
	ld8 r15=[r14]
	sub r16=sp,r16
	movl r18=0x40000
	ld8 r19=[r17]
	;;
	adds r15=1,r15
	cmp.ltu p6,p0=r16,r18
	adds r19=16,r19
	addl r16=@gprel(where),gp
	;;
	st8 [r14]=r15
	st8 [r17]=r19
	;;
	(p6) ld8 r15=[r16]
	;;
	(p6) adds r15=1,r15
	;;
	(p6) st8 [r16]=r15
	mov out0=6
	;;
	br.call.sptk.many b0=spoil
	;;
	mov ar.lc=r38
	mov b0=r37
	mov ar.pfs=r36
	mov pr=r0,-1
	;;
	br.ret.sptk.many b0
.Lwrong:
	mov out0=200
	mov r15=1025
	;;
	break.m 0x100000
	;;
	.endp handler

// void spoil(long depth): overwrite what a function need not preserve, in frames of 96 registers
	.proc spoil
spoil:
	.prologue
	.save ar.pfs, r33
	alloc r33=ar.pfs,1,94,1,0
	.save rp, r34
	mov r34=b0
	.body
	cmp.eq p6,p0=0,r32
	;;
	.irp n, 40,50,60,70,80,90,100,110,126
	mov r\n=-1
	.endr
	adds r127=-1,r32
	(p6) br.cond.spnt .Ldeep
	;;
	br.call.sptk.many b0=spoil
	;;
.Ldeep:
	mov b0=r34
	mov ar.pfs=r33
	.irp n, 2,3,8,9,10,11,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	mov r\n=-1
	.endr
	;;
	.irp n, 6,7,8,9,10,11,12,13,14,15,32,33,34,100,127
	setf.sig f\n=r3
	.endr
	mov ar.ccv=r3
	mov b6=r3
	mov b7=r3
	mov ar.lc=r3
	;;
	br.ret.sptk.many b0
	.endp spoil
