// Loops of rotating registers: a copy with three stages in flight, a dot product, a search
// that ends by br.wtop.
	.include "rt.s"

	COUNT = 64

	.data
.Lcopy:		stringz "copied "
.Ldot:		stringz ", dot product "
.Lfound:	stringz ", found at "
.Lnewline:	stringz "\n"

	.bss
	.align 16
left:	.skip 8*COUNT
right:	.skip 8*COUNT

	.text
// void fill(long *values, long count, long step)
	.global fill
	.proc fill
fill:
	.prologue
	.save ar.lc, r9
	mov r9=ar.lc
	.body
	adds r14=-1,r33
	mov r15=r34
	;;
	mov ar.lc=r14
	;;
.Lfill:	st8 [r32]=r15,8
	add r15=r15,r34
	br.cloop.sptk.few .Lfill
	;;
	mov ar.lc=r9
	br.ret.sptk.many b0
	.endp fill

// long copy(long *to, const long *from, long count): a load, two waits, a store in flight
	.global copy
	.proc copy
copy:
	.prologue
	// r32 to r39 rotate: what stays is copied out of them first
	.save ar.pfs, r2
	alloc r2=ar.pfs,3,5,0,8
	.save ar.lc, r9
	mov r9=ar.lc
	.save pr, r10
	mov r10=pr
	.body
	mov r14=r32
	mov r15=r33
	mov r16=r34
	;;
	adds r17=-1,r16
	mov ar.ec=4
	;;
	mov ar.lc=r17
	mov pr.rot=1<<16
	;;
.Lstage:
	(p16) ld8 r32=[r15],8
	(p19) st8 [r14]=r35,8
	br.ctop.sptk.few .Lstage
	;;
	mov r8=r16
	mov pr=r10,-1
	mov ar.lc=r9
	mov ar.pfs=r2
	br.ret.sptk.many b0
	.endp copy

// long dot(const long *one, const long *other, long count)
	.global dot
	.proc dot
dot:
	.prologue
	.save ar.lc, r9
	mov r9=ar.lc
	.body
	adds r14=-1,r34
	mov r8=0
	;;
	mov ar.lc=r14
	;;
.Ldotstep:
	ld8 r15=[r32],8
	ld8 r16=[r33],8
	;;
	setf.sig f6=r15
	setf.sig f7=r16
	;;
	xmpy.l f6=f6,f7
	;;
	getf.sig r15=f6
	;;
	add r8=r8,r15
	br.cloop.sptk.few .Ldotstep
	;;
	mov ar.lc=r9
	br.ret.sptk.many b0
	.endp dot

// long search(const long *values, long wanted): its index; the load runs one round ahead
	.global search
	.proc search
search:
	.prologue
	.save ar.pfs, r2
	alloc r2=ar.pfs,2,6,0,8
	.save pr, r10
	mov r10=pr
	.body
	mov r14=r32
	mov r15=r33
	mov r8=-1
	;;
	ld8 r33=[r14],8
	mov ar.ec=1
	mov pr.rot=0
	;;
	cmp.ne p6,p0=r33,r15
	;;
.Lsearch:
	ld8 r32=[r14],8
	adds r8=1,r8
	cmp.ne p6,p0=r33,r15
	;;
	{ .mib
	nop.m 0
	nop.i 0
	(p6) br.wtop.sptk.few .Lsearch
	;;
	}
	mov pr=r10,-1
	mov ar.pfs=r2
	br.ret.sptk.many b0
	.endp search

	.global main
	.proc main
main:
	.prologue
	.save ar.pfs, r32
	alloc loc0=ar.pfs,0,4,3,0
	.save rp, loc1
	mov loc1=b0
	.body
	addl loc2=@gprel(left),gp
	addl loc3=@gprel(right),gp
	;;
	mov out0=loc2
	mov out1=COUNT
	mov out2=3
	call fill
	addl out0=@gprel(.Lcopy),gp
	call print_text
	mov out0=loc3
	mov out1=loc2
	mov out2=COUNT
	call copy
	mov out0=r8
	call print_number
	addl out0=@gprel(.Ldot),gp
	call print_text
	mov out0=loc2
	mov out1=loc3
	mov out2=COUNT
	call dot
	mov out0=r8
	call print_number
	addl out0=@gprel(.Lfound),gp
	call print_text
	mov out0=loc3
	mov out1=123
	call search
	mov out0=r8
	call print_number
	addl out0=@gprel(.Lnewline),gp
	call print_text
	mov r8=0
	mov b0=loc1
	mov ar.pfs=loc0
	br.ret.sptk.many b0
	.endp main
