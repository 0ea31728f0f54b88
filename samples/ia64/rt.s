// The run time of the IA-64 samples: start, output, system calls.
// No compiler for IA-64 is packaged any more, so these samples are written by hand.

	.explicit

// `.save ar.pfs` stands before the alloc that names a frame's registers: it takes their numbers.

// The stop makes the call the last of its bundle: what stood behind it there would be skipped.
	.macro call target
	;;
	br.call.sptk.many b0=\target
	;;
	.endm

	.text
	.global _start
	.proc _start
_start:
	.prologue
	.save rp, r0
	alloc loc0=ar.pfs,0,1,1,0
	.body
.Lhere:	mov r3=ip
	movl gp=@gprel(.Lhere)
	;;
	sub gp=r3,gp
	call main
	mov out0=r8
	call sys_exit
	break.m 0
	.endp _start

// long sys_*(...): the result, or -errno; all arguments are out registers of the caller.
	.macro syscall name, number
	.global \name
	.proc \name
\name:	mov r15=\number
	;;
	break.m 0x100000
	;;
	cmp.eq p6,p0=-1,r10
	;;
	(p6) sub r8=r0,r8
	br.ret.sptk.many b0
	.endp \name
	.endm

	syscall sys_exit, 1236
	syscall sys_read, 1026
	syscall sys_write, 1027
	syscall sys_close, 1029
	syscall sys_getpid, 1041
	syscall sys_brk, 1060
	syscall sys_getppid, 1042
	syscall sys_pipe2, 1317
	syscall sys_lseek, 1040

// void print_text(const char *text)
	.global print_text
	.proc print_text
print_text:
	.prologue
	.save ar.pfs, r33
	alloc loc0=ar.pfs,1,2,3,0
	.save rp, loc1
	mov loc1=b0
	.body
	mov r14=in0
	;;
.Lscan:	ld1 r15=[r14],1
	;;
	cmp.ne p6,p0=r0,r15
	(p6) br.cond.sptk .Lscan
	;;
	sub out2=r14,in0
	mov out0=1
	mov out1=in0
	;;
	adds out2=-1,out2
	call sys_write
	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp print_text

// void print_number(unsigned long n), decimal
	.global print_number
	.proc print_number
print_number:
	.prologue
	.save ar.pfs, r33
	alloc loc0=ar.pfs,1,3,3,0
	.save rp, loc1
	mov loc1=b0
	.vframe loc2
	mov loc2=sp
	;;
	adds sp=-48,sp
	.body
	mov r14=loc2
	movl r15=0xcccccccccccccccd
	;;
	setf.sig f6=r15
	st1 [r14]=r0
.Ldigit:
	setf.sig f7=in0
	;;
	xmpy.hu f7=f7,f6
	;;
	getf.sig r16=f7
	;;
	shr.u r16=r16,3			// n / 10
	;;
	shladd r17=r16,2,r16		// times 5
	;;
	shladd r17=r17,1,r0
	;;
	sub r17=in0,r17			// n % 10
	adds r14=-1,r14
	;;
	adds r17=48,r17
	mov in0=r16
	;;
	st1 [r14]=r17
	cmp.ne p6,p0=r0,in0
	(p6) br.cond.sptk .Ldigit
	;;
	mov out0=r14
	call print_text
	.restore sp
	mov sp=loc2
	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp print_number
