"""Formats of integer instructions: ALU (slots M and I) and the I unit."""

from typing import Final

ALU: Final = """
A1 8 x2a=0 ve=0 x4=0 x2b=0 | add r1=r2,r3
A1 8 x2a=0 ve=0 x4=0 x2b=1 | add r1=r2,r3,1
A1 8 x2a=0 ve=0 x4=1 x2b=1 | sub r1=r2,r3
A1 8 x2a=0 ve=0 x4=1 x2b=0 | sub r1=r2,r3,1
A1 8 x2a=0 ve=0 x4=2 x2b=0 | addp4 r1=r2,r3
A1 8 x2a=0 ve=0 x4=3 x2b=0 | and r1=r2,r3
A1 8 x2a=0 ve=0 x4=3 x2b=1 | andcm r1=r2,r3
A1 8 x2a=0 ve=0 x4=3 x2b=2 | or r1=r2,r3
A1 8 x2a=0 ve=0 x4=3 x2b=3 | xor r1=r2,r3
A2 8 x2a=0 ve=0 x4=4 | shladd r1=r2,count2,r3
A2 8 x2a=0 ve=0 x4=6 | shladdp4 r1=r2,count2,r3
A3 8 x2a=0 ve=0 x4=9 x2b=1 | sub r1=imm8,r3
A3 8 x2a=0 ve=0 x4=b x2b=0 | and r1=imm8,r3
A3 8 x2a=0 ve=0 x4=b x2b=1 | andcm r1=imm8,r3
A3 8 x2a=0 ve=0 x4=b x2b=2 | or r1=imm8,r3
A3 8 x2a=0 ve=0 x4=b x2b=3 | xor r1=imm8,r3
A4 8 x2a=2 ve=0 i=0 len6=0 r2=0 | mov r1=r3
A4 8 x2a=2 ve=0 | adds r1=imm14,r3
A4 8 x2a=3 ve=0 | addp4 r1=imm14,r3
A5 9 r3a=0 | mov r1=imm22
A5 9 | addl r1=imm22,r3a
A6 c tb=0 x2a=0 ta=0 | cmp{w4}.lt{unc} p1,p2=r2,r3
A6 c tb=0 x2a=1 ta=0 | cmp{w4}.lt{unc} p1,p2=r2,r3
A6 d tb=0 x2a=0 ta=0 | cmp{w4}.ltu{unc} p1,p2=r2,r3
A6 d tb=0 x2a=1 ta=0 | cmp{w4}.ltu{unc} p1,p2=r2,r3
A6 e tb=0 x2a=0 ta=0 | cmp{w4}.eq{unc} p1,p2=r2,r3
A6 e tb=0 x2a=1 ta=0 | cmp{w4}.eq{unc} p1,p2=r2,r3
A6 c tb=0 x2a=0 ta=1 | cmp{w4}.{eqne}.and p1,p2=r2,r3
A6 c tb=0 x2a=1 ta=1 | cmp{w4}.{eqne}.and p1,p2=r2,r3
A6 d tb=0 x2a=0 ta=1 | cmp{w4}.{eqne}.or p1,p2=r2,r3
A6 d tb=0 x2a=1 ta=1 | cmp{w4}.{eqne}.or p1,p2=r2,r3
A6 e tb=0 x2a=0 ta=1 | cmp{w4}.{eqne}.or.andcm p1,p2=r2,r3
A6 e tb=0 x2a=1 ta=1 | cmp{w4}.{eqne}.or.andcm p1,p2=r2,r3
A7 c tb=1 x2a=0 ta=0 | cmp{w4}.{gtle}.and p1,p2=r0,r3
A7 c tb=1 x2a=1 ta=0 | cmp{w4}.{gtle}.and p1,p2=r0,r3
A7 d tb=1 x2a=0 ta=0 | cmp{w4}.{gtle}.or p1,p2=r0,r3
A7 d tb=1 x2a=1 ta=0 | cmp{w4}.{gtle}.or p1,p2=r0,r3
A7 e tb=1 x2a=0 ta=0 | cmp{w4}.{gtle}.or.andcm p1,p2=r0,r3
A7 e tb=1 x2a=1 ta=0 | cmp{w4}.{gtle}.or.andcm p1,p2=r0,r3
A7 c tb=1 x2a=0 ta=1 | cmp{w4}.{gelt}.and p1,p2=r0,r3
A7 c tb=1 x2a=1 ta=1 | cmp{w4}.{gelt}.and p1,p2=r0,r3
A7 d tb=1 x2a=0 ta=1 | cmp{w4}.{gelt}.or p1,p2=r0,r3
A7 d tb=1 x2a=1 ta=1 | cmp{w4}.{gelt}.or p1,p2=r0,r3
A7 e tb=1 x2a=0 ta=1 | cmp{w4}.{gelt}.or.andcm p1,p2=r0,r3
A7 e tb=1 x2a=1 ta=1 | cmp{w4}.{gelt}.or.andcm p1,p2=r0,r3
A8 c x2a=2 ta=0 | cmp{w4}.lt{unc} p1,p2=imm8,r3
A8 c x2a=3 ta=0 | cmp{w4}.lt{unc} p1,p2=imm8,r3
A8 d x2a=2 ta=0 | cmp{w4}.ltu{unc} p1,p2=imm8,r3
A8 d x2a=3 ta=0 | cmp{w4}.ltu{unc} p1,p2=imm8,r3
A8 e x2a=2 ta=0 | cmp{w4}.eq{unc} p1,p2=imm8,r3
A8 e x2a=3 ta=0 | cmp{w4}.eq{unc} p1,p2=imm8,r3
A8 c x2a=2 ta=1 | cmp{w4}.{eqne}.and p1,p2=imm8,r3
A8 c x2a=3 ta=1 | cmp{w4}.{eqne}.and p1,p2=imm8,r3
A8 d x2a=2 ta=1 | cmp{w4}.{eqne}.or p1,p2=imm8,r3
A8 d x2a=3 ta=1 | cmp{w4}.{eqne}.or p1,p2=imm8,r3
A8 e x2a=2 ta=1 | cmp{w4}.{eqne}.or.andcm p1,p2=imm8,r3
A8 e x2a=3 ta=1 | cmp{w4}.{eqne}.or.andcm p1,p2=imm8,r3
A9 8 x2a=1 x4=0 x2b=0 | padd{sz} r1=r2,r3
A9 8 x2a=1 x4=0 x2b=1 | padd{sz12}.sss r1=r2,r3
A9 8 x2a=1 x4=0 x2b=2 | padd{sz12}.uuu r1=r2,r3
A9 8 x2a=1 x4=0 x2b=3 | padd{sz12}.uus r1=r2,r3
A9 8 x2a=1 x4=1 x2b=0 | psub{sz} r1=r2,r3
A9 8 x2a=1 x4=1 x2b=1 | psub{sz12}.sss r1=r2,r3
A9 8 x2a=1 x4=1 x2b=2 | psub{sz12}.uuu r1=r2,r3
A9 8 x2a=1 x4=1 x2b=3 | psub{sz12}.uus r1=r2,r3
A9 8 x2a=1 x4=2 x2b=2 | pavg{sz12} r1=r2,r3
A9 8 x2a=1 x4=2 x2b=3 | pavg{sz12}.raz r1=r2,r3
A9 8 x2a=1 x4=3 x2b=2 | pavgsub{sz12} r1=r2,r3
A9 8 x2a=1 x4=9 x2b=0 | pcmp{sz}.eq r1=r2,r3
A9 8 x2a=1 x4=9 x2b=1 | pcmp{sz}.gt r1=r2,r3
A10 8 x2a=1 za=0 zb=1 x4=4 | pshladd2 r1=r2,count2,r3
A10 8 x2a=1 za=0 zb=1 x4=6 | pshradd2 r1=r2,count2,r3
"""

INTEGER: Final = """
I1 7 za=0 zb=1 ivx=0 x2a=0 ix2b=1 | pmpyshr2.u r1=r2,r3,count16
I1 7 za=0 zb=1 ivx=0 x2a=0 ix2b=3 | pmpyshr2 r1=r2,r3,count16
I2 7 za=0 zb=1 ivx=0 x2a=2 ix2b=1 ix2c=3 | pmpy2.r r1=r2,r3
I2 7 za=0 zb=1 ivx=0 x2a=2 ix2b=3 ix2c=3 | pmpy2.l r1=r2,r3
I2 7 ivx=0 x2a=2 ix2b=0 ix2c=2 | mix{sz}.r r1=r2,r3
I2 7 ivx=0 x2a=2 ix2b=2 ix2c=2 | mix{sz}.l r1=r2,r3
I2 7 ivx=0 x2a=2 ix2b=0 ix2c=1 | unpack{sz}.h r1=r2,r3
I2 7 ivx=0 x2a=2 ix2b=2 ix2c=1 | unpack{sz}.l r1=r2,r3
I2 7 za=0 zb=1 ivx=0 x2a=2 ix2b=0 ix2c=0 | pack2.uss r1=r2,r3
I2 7 ivx=0 x2a=2 ix2b=2 ix2c=0 | pack{sz24}.sss r1=r2,r3
I2 7 za=0 zb=0 ivx=0 x2a=2 ix2b=1 ix2c=0 | pmin1.u r1=r2,r3
I2 7 za=0 zb=0 ivx=0 x2a=2 ix2b=1 ix2c=1 | pmax1.u r1=r2,r3
I2 7 za=0 zb=1 ivx=0 x2a=2 ix2b=3 ix2c=0 | pmin2 r1=r2,r3
I2 7 za=0 zb=1 ivx=0 x2a=2 ix2b=3 ix2c=1 | pmax2 r1=r2,r3
I2 7 za=0 zb=0 ivx=0 x2a=2 ix2b=3 ix2c=2 | psad1 r1=r2,r3
I2 7 za=1 zb=0 ivx=0 x2a=0 ix2b=1 ix2c=3 | mpy4 r1=r2,r3
I2 7 za=1 zb=0 ivx=0 x2a=0 ix2b=3 ix2c=3 | mpyshl4 r1=r2,r3
I3 7 za=0 zb=0 ivx=0 x2a=3 ix2b=2 ix2c=2 | mux1 r1=r2,mbt4
I4 7 za=0 zb=1 ivx=0 x2a=3 ix2b=2 ix2c=2 | mux2 r1=r2,mht8
I5 7 za=1 zb=1 ivx=0 x2a=0 ix2b=0 ix2c=0 | shr.u r1=r3,r2
I5 7 za=1 zb=1 ivx=0 x2a=0 ix2b=2 ix2c=0 | shr r1=r3,r2
I5 7 ivx=0 x2a=0 ix2b=0 ix2c=0 | pshr{sz24}.u r1=r3,r2
I5 7 ivx=0 x2a=0 ix2b=2 ix2c=0 | pshr{sz24} r1=r3,r2
I6 7 ivx=0 x2a=1 ix2b=1 ix2c=0 | pshr{sz24}.u r1=r3,count5
I6 7 ivx=0 x2a=1 ix2b=3 ix2c=0 | pshr{sz24} r1=r3,count5
I7 7 za=1 zb=1 ivx=0 x2a=0 ix2b=0 ix2c=1 | shl r1=r2,r3
I7 7 ivx=0 x2a=0 ix2b=0 ix2c=1 | pshl{sz24} r1=r2,r3
I8 7 ivx=0 x2a=3 ix2b=1 ix2c=1 | pshl{sz24} r1=r2,ccount5
I9 7 za=0 zb=1 ivx=0 x2a=1 ix2b=1 ix2c=2 | popcnt r1=r3
I9 7 za=0 zb=1 ivx=0 x2a=1 ix2b=1 ix2c=3 | clz r1=r3
I10 5 x2=3 x=0 | shrp r1=r2,r3,count6
I11 5 x2=1 x=0 yb=0 len6==~pos6 | shr.u r1=r3,pos6
I11 5 x2=1 x=0 yb=1 len6==~pos6 | shr r1=r3,pos6
I11 5 x2=1 x=0 yb=0 | extr.u r1=r3,pos6,len6
I11 5 x2=1 x=0 yb=1 | extr r1=r3,pos6,len6
I12 5 x2=1 x=1 ya=0 len6==cpos6c | shl r1=r2,cpos6c
I12 5 x2=1 x=1 ya=0 | dep.z r1=r2,cpos6c,len6
I13 5 x2=1 x=1 ya=1 | dep.z r1=imm8,cpos6c,len6
I14 5 x2=3 x=1 | dep r1=imm1,r3,cpos6b,len6
I15 4 | dep r1=r2,r3,cpos6d,len4
I16 5 x2=0 tb=0 ta=0 yb=0 | tbit.z{unc} p1,p2=r3,pos6
I16 5 x2=0 tb=1 ta=0 yb=0 | tbit.{znz}.and p1,p2=r3,pos6
I16 5 x2=0 tb=0 ta=1 yb=0 | tbit.{znz}.or p1,p2=r3,pos6
I16 5 x2=0 tb=1 ta=1 yb=0 | tbit.{znz}.or.andcm p1,p2=r3,pos6
I17 5 x2=0 tb=0 ta=0 yb=1 yc=0 | tnat.z{unc} p1,p2=r3
I17 5 x2=0 tb=1 ta=0 yb=1 yc=0 | tnat.{znz}.and p1,p2=r3
I17 5 x2=0 tb=0 ta=1 yb=1 yc=0 | tnat.{znz}.or p1,p2=r3
I17 5 x2=0 tb=1 ta=1 yb=1 yc=0 | tnat.{znz}.or.andcm p1,p2=r3
I30 5 x2=0 tb=0 ta=0 yb=1 yc=1 | tf.z{unc} p1,p2=imm5
I30 5 x2=0 tb=1 ta=0 yb=1 yc=1 | tf.{znz}.and p1,p2=imm5
I30 5 x2=0 tb=0 ta=1 yb=1 yc=1 | tf.{znz}.or p1,p2=imm5
I30 5 x2=0 tb=1 ta=1 yb=1 yc=1 | tf.{znz}.or.andcm p1,p2=imm5
I19 0 x3=0 x6=0 | break.i imm21
I18 0 x3=0 x6=1 ya=0 | nop.i imm21
I18 0 x3=0 x6=1 ya=1 | hint.i imm21
I20 0 x3=1 | chk.s.i r2,targeti
I21 0 x3=7 ret=0 ih=0 wh9=1 | mov b1=r2
I21 0 x3=7 | mov{ret}{mwh}{imp} b1=r2,tag9
I22 0 x3=0 x6=31 | mov r1=b2
I23 0 x3=3 | mov pr=r2,imm17
I24 0 x3=2 | mov pr.rot=imm44
I25 0 x3=0 x6=30 | mov r1=ip
I25 0 x3=0 x6=33 | mov r1=pr
I26 0 x3=0 x6=2a | mov.i ar3=r2
I27 0 x3=0 x6=a | mov.i ar3=imm8
I28 0 x3=0 x6=32 | mov.i r1=ar3
I29 0 x3=0 x6=10 | zxt1 r1=r3
I29 0 x3=0 x6=11 | zxt2 r1=r3
I29 0 x3=0 x6=12 | zxt4 r1=r3
I29 0 x3=0 x6=14 | sxt1 r1=r3
I29 0 x3=0 x6=15 | sxt2 r1=r3
I29 0 x3=0 x6=16 | sxt4 r1=r3
I29 0 x3=0 x6=18 | czx1.l r1=r3
I29 0 x3=0 x6=19 | czx2.l r1=r3
I29 0 x3=0 x6=1c | czx1.r r1=r3
I29 0 x3=0 x6=1d | czx2.r r1=r3
"""
