"""Formats of the M unit: memory, semaphores, moves, and system instructions."""

from typing import Final

MEMORY: Final = """
M1 4 m=0 mx=0 | ld{size}{ldk}{lhd} r1=[r3]
M1 4 m=0 mx=0 mx6=1b | ld8.fill{lhd} r1=[r3]
M2 4 m=1 mx=0 | ld{size}{ldk}{lh} r1=[r3],r2
M2 4 m=1 mx=0 mx6=1b | ld8.fill{lh} r1=[r3],r2
M3 5 | ld{size}{ldk}{lh} r1=[r3],imm9b
M3 5 mx6=1b | ld8.fill{lh} r1=[r3],imm9b
M4 4 m=0 mx=0 mrow=c | st{size}{shd} [r3]=r2
M4 4 m=0 mx=0 mrow=d | st{size}.rel{shd} [r3]=r2
M4 4 m=0 mx=0 mx6=3b | st8.spill{shd} [r3]=r2
M5 5 mrow=c | st{size}{sh} [r3]=r2,imm9a
M5 5 mrow=d | st{size}.rel{sh} [r3]=r2,imm9a
M5 5 mx6=3b | st8.spill{sh} [r3]=r2,imm9a
M6 6 m=0 mx=0 | ldf{fsz}{fldk}{lhd} f1=[r3]
M6 6 m=0 mx=0 mx6=1b | ldf.fill{lhd} f1=[r3]
M7 6 m=1 mx=0 | ldf{fsz}{fldk}{lh} f1=[r3],r2
M7 6 m=1 mx=0 mx6=1b | ldf.fill{lh} f1=[r3],r2
M8 7 | ldf{fsz}{fldk}{lh} f1=[r3],imm9b
M8 7 mx6=1b | ldf.fill{lh} f1=[r3],imm9b
M9 6 m=0 mx=0 mrow=c | stf{fsz}{shd} [r3]=f2
M9 6 m=0 mx=0 mx6=3b | stf.spill{shd} [r3]=f2
M10 7 mrow=c | stf{fsz}{sh} [r3]=f2,imm9a
M10 7 mx6=3b | stf.spill{sh} [r3]=f2,imm9a
M11 6 m=0 mx=1 | ldfp{psz}{fldk}{lh} f1,f2=[r3]
M12 6 m=1 mx=1 mps=2 | ldfp{psz}{fldk}{lh} f1,f2=[r3],8
M12 6 m=1 mx=1 | ldfp{psz}{fldk}{lh} f1,f2=[r3],16
M13 6 m=0 mx=0 mx6=2c yc=1 | lfetch.count{fh} [r3],count,stride
M13 6 m=0 mx=0 mrow=b | lfetch{exclfault}{fh} [r3]
M14 6 m=1 mx=0 mrow=b | lfetch{exclfault}{fh} [r3],r2
M15 7 mrow=b | lfetch{exclfault}{fh} [r3],imm9b
M16 4 m=0 mx=1 mrow=0 | cmpxchg{size}{acqrel}{lh} r1=[r3],r2,ar.ccv
M16 4 m=0 mx=1 mrow=1 | cmpxchg{size}{acqrel}{lh} r1=[r3],r2,ar.ccv
M16 4 m=0 mx=1 mrow=2 | xchg{size}{lh} r1=[r3],r2
M16 4 m=0 mx=1 mx6=20 | cmp8xchg16{acqrel}{lh} r1=[r3],r2,ar.csd,ar.ccv
M16 4 m=0 mx=1 mx6=24 | cmp8xchg16{acqrel}{lh} r1=[r3],r2,ar.csd,ar.ccv
M1 4 m=0 mx=1 mx6=28 | ld16{lhd} r1,ar.csd=[r3]
M1 4 m=0 mx=1 mx6=2c | ld16{acq}{lhd} r1,ar.csd=[r3]
M4 4 m=0 mx=1 mx6=30 | st16{shd} [r3]=r2,ar.csd
M4 4 m=0 mx=1 mx6=34 | st16{rel}{shd} [r3]=r2,ar.csd
M17 4 m=0 mx=1 mx6=12 | fetchadd4.acq{lh} r1=[r3],inc3
M17 4 m=0 mx=1 mx6=13 | fetchadd8.acq{lh} r1=[r3],inc3
M17 4 m=0 mx=1 mx6=16 | fetchadd4.rel{lh} r1=[r3],inc3
M17 4 m=0 mx=1 mx6=17 | fetchadd8.rel{lh} r1=[r3],inc3
M18 6 m=0 mx=1 mrow=7 | setf{gsz} f1=r2
M19 4 m=0 mx=1 mrow=7 | getf{gsz} r1=f2
M20 1 x3=1 | chk.s.m r2,target20
M21 1 x3=3 | chk.s f2,target20
M22 0 x3=4 | chk.a.nc r1,target25
M22 0 x3=5 | chk.a.clr r1,target25
M23 0 x3=6 | chk.a.nc f1,target25
M23 0 x3=7 | chk.a.clr f1,target25
M24 0 x3=0 mx4=0 mx2=1 | invala
M24 0 x3=0 mx4=0 mx2=2 | fwb
M24 0 x3=0 mx4=2 mx2=2 | mf
M24 0 x3=0 mx4=3 mx2=2 | mf.a
M24 0 x3=0 mx4=0 mx2=3 | srlz.d
M24 0 x3=0 mx4=1 mx2=3 | srlz.i
M24 0 x3=0 mx4=3 mx2=3 | sync.i
M25 0 x3=0 mx4=c mx2=0 noqp | flushrs
M25 0 x3=0 mx4=a mx2=0 noqp | loadrs
M26 0 x3=0 mx4=2 mx2=1 | invala.e r1
M27 0 x3=0 mx4=3 mx2=1 | invala.e f1
M28 1 x3=0 x6=30 i=0 | fc r3
M28 1 x3=0 x6=30 i=1 | fc.i r3
M29 1 x3=0 x6=2a | mov.m ar3=r2
M30 0 x3=0 mx4=8 mx2=2 | mov.m ar3=imm8
M31 1 x3=0 x6=22 | mov.m r1=ar3
M32 1 x3=0 x6=2c | mov cr3=r2
M33 1 x3=0 x6=24 | mov r1=cr3
M34 1 x3=6 noqp | alloc r1=ar.pfs,sof,sol,sor
M35 1 x3=0 x6=2d | mov psr.l=r2
M35 1 x3=0 x6=29 | mov psr.um=r2
M36 1 x3=0 x6=25 | mov r1=psr
M36 1 x3=0 x6=21 | mov r1=psr.um
M37 0 x3=0 mx4=0 mx2=0 | break.m imm21
M48 0 x3=0 mx4=1 mx2=0 ya=0 | nop.m imm21
M48 0 x3=0 mx4=1 mx2=0 ya=1 y10=0 | hint.m hintm
M51 0 x3=0 mx4=1 mx2=0 ya=1 y10=1 | mov dahrn=imm16
M38 1 x3=0 x6=38 | probe.r r1=r3,r2
M38 1 x3=0 x6=39 | probe.w r1=r3,r2
M39 1 x3=0 x6=18 | probe.r r1=r3,imm2
M39 1 x3=0 x6=19 | probe.w r1=r3,imm2
M40 1 x3=0 x6=31 | probe.rw.fault r3,imm2
M40 1 x3=0 x6=32 | probe.r.fault r3,imm2
M40 1 x3=0 x6=33 | probe.w.fault r3,imm2
M41 1 x3=0 x6=2e | itc.d r2
M41 1 x3=0 x6=2f | itc.i r2
M42 1 x3=0 x6=0 | mov rr[r3]=r2
M42 1 x3=0 x6=1 | mov dbr[r3]=r2
M42 1 x3=0 x6=2 | mov ibr[r3]=r2
M42 1 x3=0 x6=3 | mov pkr[r3]=r2
M42 1 x3=0 x6=4 | mov pmc[r3]=r2
M42 1 x3=0 x6=5 | mov pmd[r3]=r2
M42 1 x3=0 x6=6 | mov msr[r3]=r2
M42 1 x3=0 x6=e | itr.d dtr[r3]=r2
M42 1 x3=0 x6=f | itr.i itr[r3]=r2
M43 1 x3=0 x6=10 | mov r1=rr[r3]
M43 1 x3=0 x6=11 | mov r1=dbr[r3]
M43 1 x3=0 x6=12 | mov r1=ibr[r3]
M43 1 x3=0 x6=13 | mov r1=pkr[r3]
M43 1 x3=0 x6=14 | mov r1=pmc[r3]
M43 1 x3=0 x6=15 | mov r1=pmd[r3]
M43 1 x3=0 x6=16 | mov r1=msr[r3]
M43 1 x3=0 x6=17 | mov r1=cpuid[r3]
M43 1 x3=0 x6=20 | mov r1=dahr[r3]
M44 0 x3=0 mx4=4 | sum imm24
M44 0 x3=0 mx4=5 | rum imm24
M44 0 x3=0 mx4=6 | ssm imm24
M44 0 x3=0 mx4=7 | rsm imm24
M45 1 x3=0 x6=9 | ptc.l r3,r2
M45 1 x3=0 x6=a | ptc.g r3,r2
M45 1 x3=0 x6=b | ptc.ga r3,r2
M45 1 x3=0 x6=c | ptr.d r3,r2
M45 1 x3=0 x6=d | ptr.i r3,r2
M46 1 x3=0 x6=1a | thash r1=r3
M46 1 x3=0 x6=1b | ttag r1=r3
M46 1 x3=0 x6=1e | tpa r1=r3
M46 1 x3=0 x6=1f | tak r1=r3
M47 1 x3=0 x6=34 | ptc.e r3
"""
