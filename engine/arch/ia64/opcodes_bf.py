"""Formats of the F, B and X units."""

from typing import Final

FLOAT: Final = """
F1 8 fx=0 f4=1 f2=0 | fnorm{sf} f1=f3
F1 8 fx=0 f4=1 | fadd{sf} f1=f3,f2
F1 8 fx=0 f2=0 | fmpy{sf} f1=f3,f4
F1 8 fx=0 | fma{sf} f1=f3,f4,f2
F1 8 fx=1 f4=1 f2=0 | fnorm.s{sf} f1=f3
F1 8 fx=1 f4=1 | fadd.s{sf} f1=f3,f2
F1 8 fx=1 f2=0 | fmpy.s{sf} f1=f3,f4
F1 8 fx=1 | fma.s{sf} f1=f3,f4,f2
F1 9 fx=0 f4=1 f2=0 | fnorm.d{sf} f1=f3
F1 9 fx=0 f4=1 | fadd.d{sf} f1=f3,f2
F1 9 fx=0 f2=0 | fmpy.d{sf} f1=f3,f4
F1 9 fx=0 | fma.d{sf} f1=f3,f4,f2
F1 9 fx=1 f2=0 | fpmpy{sf} f1=f3,f4
F1 9 fx=1 | fpma{sf} f1=f3,f4,f2
F1 a fx=0 f4=1 | fsub{sf} f1=f3,f2
F1 a fx=0 | fms{sf} f1=f3,f4,f2
F1 a fx=1 f4=1 | fsub.s{sf} f1=f3,f2
F1 a fx=1 | fms.s{sf} f1=f3,f4,f2
F1 b fx=0 f4=1 | fsub.d{sf} f1=f3,f2
F1 b fx=0 | fms.d{sf} f1=f3,f4,f2
F1 b fx=1 | fpms{sf} f1=f3,f4,f2
F1 c fx=0 f2=0 | fnmpy{sf} f1=f3,f4
F1 c fx=0 | fnma{sf} f1=f3,f4,f2
F1 c fx=1 f2=0 | fnmpy.s{sf} f1=f3,f4
F1 c fx=1 | fnma.s{sf} f1=f3,f4,f2
F1 d fx=0 f2=0 | fnmpy.d{sf} f1=f3,f4
F1 d fx=0 | fnma.d{sf} f1=f3,f4,f2
F1 d fx=1 f2=0 | fpnmpy{sf} f1=f3,f4
F1 d fx=1 | fpnma{sf} f1=f3,f4,f2
F2 e fx=1 x2=0 f2=0 | xmpy.l f1=f3,f4
F2 e fx=1 x2=0 | xma.l f1=f3,f4,f2
F2 e fx=1 x2=2 f2=0 | xmpy.hu f1=f3,f4
F2 e fx=1 x2=2 | xma.hu f1=f3,f4,f2
F2 e fx=1 x2=3 f2=0 | xmpy.h f1=f3,f4
F2 e fx=1 x2=3 | xma.h f1=f3,f4,f2
F3 e fx=0 | fselect f1=f3,f4,f2
F4 4 | fcmp.{frel}{unc}{sf} p1,p2=f2,f3
F5 5 | fclass.m{unc} p1,p2=f2,fclass9
F6 0 x=1 fx=0 | frcpa{sf} f1,p2=f2,f3
F6 1 x=1 fx=0 | fprcpa{sf} f1,p2=f2,f3
F7 0 x=1 fx=1 | frsqrta{sf} f1,p2=f3
F7 1 x=1 fx=1 | fprsqrta{sf} f1,p2=f3
F8 0 x=0 x6=14 | fmin{sf} f1=f2,f3
F8 0 x=0 x6=15 | fmax{sf} f1=f2,f3
F8 0 x=0 x6=16 | famin{sf} f1=f2,f3
F8 0 x=0 x6=17 | famax{sf} f1=f2,f3
F8 1 x=0 x6=14 | fpmin{sf} f1=f2,f3
F8 1 x=0 x6=15 | fpmax{sf} f1=f2,f3
F8 1 x=0 x6=16 | fpamin{sf} f1=f2,f3
F8 1 x=0 x6=17 | fpamax{sf} f1=f2,f3
F8 1 x=0 x6h=6 | fpcmp.{prel}{sf} f1=f2,f3
F9 0 x=0 x6=10 f2==f3 | mov f1=f3
F9 0 x=0 x6=10 f2=0 | fabs f1=f3
F9 0 x=0 x6=10 | fmerge.s f1=f2,f3
F9 0 x=0 x6=11 f2==f3 | fneg f1=f3
F9 0 x=0 x6=11 f2=0 | fnegabs f1=f3
F9 0 x=0 x6=11 | fmerge.ns f1=f2,f3
F9 0 x=0 x6=12 | fmerge.se f1=f2,f3
F9 1 x=0 x6=10 f2=0 | fpabs f1=f3
F9 1 x=0 x6=10 | fpmerge.s f1=f2,f3
F9 1 x=0 x6=11 f2==f3 | fpneg f1=f3
F9 1 x=0 x6=11 f2=0 | fpnegabs f1=f3
F9 1 x=0 x6=11 | fpmerge.ns f1=f2,f3
F9 1 x=0 x6=12 | fpmerge.se f1=f2,f3
F9 0 x=0 x6=28 | fpack f1=f2,f3
F9 0 x=0 x6=2c | fand f1=f2,f3
F9 0 x=0 x6=2d | fandcm f1=f2,f3
F9 0 x=0 x6=2e | for f1=f2,f3
F9 0 x=0 x6=2f | fxor f1=f2,f3
F9 0 x=0 x6=34 | fswap f1=f2,f3
F9 0 x=0 x6=35 | fswap.nl f1=f2,f3
F9 0 x=0 x6=36 | fswap.nr f1=f2,f3
F9 0 x=0 x6=39 | fmix.lr f1=f2,f3
F9 0 x=0 x6=3a | fmix.r f1=f2,f3
F9 0 x=0 x6=3b | fmix.l f1=f2,f3
F9 0 x=0 x6=3c | fsxt.r f1=f2,f3
F9 0 x=0 x6=3d | fsxt.l f1=f2,f3
F10 0 x=0 x6=18 | fcvt.fx{sf} f1=f2
F10 0 x=0 x6=19 | fcvt.fxu{sf} f1=f2
F10 0 x=0 x6=1a | fcvt.fx.trunc{sf} f1=f2
F10 0 x=0 x6=1b | fcvt.fxu.trunc{sf} f1=f2
F10 1 x=0 x6=18 | fpcvt.fx{sf} f1=f2
F10 1 x=0 x6=19 | fpcvt.fxu{sf} f1=f2
F10 1 x=0 x6=1a | fpcvt.fx.trunc{sf} f1=f2
F10 1 x=0 x6=1b | fpcvt.fxu.trunc{sf} f1=f2
F11 0 x=0 x6=1c | fcvt.xf f1=f2
F12 0 x=0 x6=4 | fsetc{sf} amask,omask
F13 0 x=0 x6=5 | fclrf{sf}
F14 0 x=0 x6=8 | fchkf{sf} targetf
F15 0 x=0 x6=0 | break.f imm21
F16 0 x=0 x6=1 ya=0 | nop.f imm21
F16 0 x=0 x6=1 ya=1 | hint.f imm21
"""

BRANCH: Final = """
B1 4 btype=0 qp=0 wh=0 | br{ph}{dh} target25
B1 4 btype=0 | br.cond{wh}{ph}{dh} target25
B1 4 btype=2 | br.wexit{wh}{ph}{dh} target25
B1 4 btype=3 | br.wtop{wh}{ph}{dh} target25
B2 4 btype=5 noqp | br.cloop{wh}{ph}{dh} target25
B2 4 btype=6 noqp | br.cexit{wh}{ph}{dh} target25
B2 4 btype=7 noqp | br.ctop{wh}{ph}{dh} target25
B3 5 | br.call{wh}{ph}{dh} b1=target25
B4 0 x6=20 btype=0 qp=0 wh=0 | br{ph}{dh} b2
B4 0 x6=20 btype=0 | br.cond{wh}{ph}{dh} b2
B4 0 x6=20 btype=1 | br.ia{wh}{ph}{dh} b2
B4 0 x6=21 btype=4 | br.ret{wh}{ph}{dh} b2
B5 1 | br.call{wh3}{ph}{dh} b1=b2
B6 7 noqp | brp{ipwh}{ih} target25,tag9b
B7 2 x6=10 noqp | brp{indwh}{ih} b2,tag9b
B7 2 x6=11 noqp | brp.ret{indwh}{ih} b2,tag9b
B8 0 x6=2 noqp | cover
B8 0 x6=4 noqp | clrrrb
B8 0 x6=5 noqp | clrrrb.pr
B8 0 x6=8 noqp | rfi
B8 0 x6=c noqp | bsw.0
B8 0 x6=d noqp | bsw.1
B8 0 x6=10 noqp | epc
B8 0 x6=18 noqp | vmsw.0
B8 0 x6=19 noqp | vmsw.1
B9 0 x6=0 | break.b imm21
B9 2 x6=0 | nop.b imm21
B9 2 x6=1 | hint.b imm21
"""

LONG: Final = """
X1 0 x3=0 x6=0 | break.x imm62
X5 0 x3=0 x6=1 ya=0 | nop.x imm62
X5 0 x3=0 x6=1 ya=1 | hint.x imm62
X2 6 vc=0 | movl r1=imm64
X3 c btype=0 qp=0 wh=0 | brl{ph}{dh} target64
X3 c btype=0 | brl.cond{wh}{ph}{dh} target64
X4 d | brl.call{wh}{ph}{dh} b1=target64
"""
