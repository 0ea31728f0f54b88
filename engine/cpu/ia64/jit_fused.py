"""LLVM text of the fused operations (fma, fms, fnma): exact values in 128 bits, rounded once."""

from typing import Final

FUSED_TEXT: Final = """
declare i256 @llvm.ctlz.i256(i256, i1)
declare i128 @llvm.ctlz.i128(i128, i1)

; x * y + z, rounded once, of numbers that are normal or plain zeros; where z is one, x and y may
; be unnormal, as integers are. The third value is the new ar.fpsr, or -1 where Python is needed.
; `what`: form, signs, product, status field. This is for what divisions consist of, all normal in
; the wide format; a flag that has to be set is left to the others, so that operations that follow
; each other need not wait for ar.fpsr.
define {i64, i64, i64} @fused(i64 %xm, i64 %xw, i64 %ym, i64 %yw, i64 %zm, i64 %zw,
                              i64 %fpsr, i64 %what) nounwind {
  %xe = and i64 %xw, 131071
  %ye = and i64 %yw, 131071
  %ze = and i64 %zw, 131071
  %xym = and i64 %xm, %ym
  %normal = icmp slt i64 %xym, 0
  %xg = sub i64 %xe, 1
  %xf = icmp ult i64 %xg, 131070
  %yg = sub i64 %ye, 1
  %yf = icmp ult i64 %yg, 131070
  %zg = sub i64 %ze, 1
  %zf = icmp ult i64 %zg, 131070
  %zi = icmp slt i64 %zm, 0
  %zb = or i64 %zm, %ze
  %z0 = icmp eq i64 %zb, 0
  %zn = and i1 %zi, %zf
  %zok = or i1 %zn, %z0
  %sf = lshr i64 %what, 5
  %sf13 = mul i64 %sf, 13
  %at = add i64 %sf13, 6
  %control = lshr i64 %fpsr, %at
  %mode = and i64 %control, 62
  %wide = icmp eq i64 %mode, 14
  %form = and i64 %what, 3
  %isdyn = icmp eq i64 %form, 0
  %k1 = and i1 %normal, %xf
  %k2 = and i1 %yf, %zok
  %k3 = and i1 %wide, %isdyn
  %k4 = and i1 %k1, %k2
  %k5 = and i1 %k3, %k4
  br i1 %k5, label %numbers, label %integer

; An integer is brought into the usual form by a product with 1, whose flag has been set before.
integer:
  %u1 = icmp ne i64 %xm, 0
  %u2 = icmp ne i64 %xe, 0
  %u3 = icmp slt i64 %ym, 0
  %u4 = and i1 %u1, %u2
  %u5 = and i1 %xf, %yf
  %u6 = and i1 %u3, %z0
  %u7 = and i1 %u4, %u5
  %u8 = and i1 %u6, %u7
  %u9 = and i1 %u8, %k3
  %dat = add i64 %sf13, 14
  %dbit = shl i64 1, %dat
  %dboth = or i64 %dbit, 2
  %dknown = and i64 %fpsr, %dboth
  %dquiet = icmp eq i64 %dknown, %dboth
  %u10 = and i1 %u9, %dquiet
  br i1 %u10, label %numbers, label %any

any:
  %found = tail call {i64, i64, i64} @fused_any(i64 %xm, i64 %xw, i64 %ym, i64 %yw, i64 %zm,
                                                i64 %zw, i64 %fpsr, i64 %what)
  ret {i64, i64, i64} %found

numbers:
  %s1 = xor i64 %xw, %yw
  %s2 = lshr i64 %s1, 17
  %n1 = lshr i64 %what, 2
  %s3 = xor i64 %s2, %n1
  %ps = and i64 %s3, 1
  %s4 = lshr i64 %zw, 17
  %n2 = lshr i64 %what, 3
  %s5 = xor i64 %s4, %n2
  %zs = and i64 %s5, 1
  %x16 = zext i64 %xm to i128
  %y16 = zext i64 %ym to i128
  %z16 = zext i64 %zm to i128
  %p = mul i128 %x16, %y16
  %pp0 = add i64 %xe, %ye
  %pp = sub i64 %pp0, 131196
  %zp = sub i64 %ze, 65598
  br i1 %z0, label %round, label %sum

sum:
  %gap = sub i64 %pp, %zp
  %lgap = sub i64 0, %gap
  %fits = icmp ult i64 %lgap, 65
  br i1 %fits, label %exact, label %apart

exact:
  %e1 = zext i64 %lgap to i128
  %e2 = shl i128 %z16, %e1
  br label %add

; Where one is far larger than the other no digits go, and what is lost is one bit.
apart:
  %up = icmp sgt i64 %gap, 0
  br i1 %up, label %small, label %large

small:
  %s6 = icmp sgt i64 %gap, 63
  br i1 %s6, label %any, label %small1

small1:
  %s7 = lshr i64 %zm, %gap
  %s8 = shl i64 %s7, %gap
  %slost = icmp ne i64 %s8, %zm
  %so = zext i64 %s7 to i128
  br label %add

large:
  %h1 = sub i64 %lgap, 63
  %h2 = icmp ugt i64 %h1, 127
  %h3 = icmp ult i64 %h1, 3
  %h4 = or i1 %h2, %h3
  br i1 %h4, label %any, label %large1

large1:
  %h5 = zext i64 %h1 to i128
  %h6 = lshr i128 %p, %h5
  %h7 = shl i128 %h6, %h5
  %hlost = icmp ne i128 %h7, %p
  %ho = shl i128 %z16, 63
  %hpower = sub i64 %zp, 63
  br label %add

add:
  %v = phi i128 [ %p, %exact ], [ %p, %small1 ], [ %h6, %large1 ]
  %o = phi i128 [ %e2, %exact ], [ %so, %small1 ], [ %ho, %large1 ]
  %lost = phi i1 [ false, %exact ], [ %slost, %small1 ], [ %hlost, %large1 ]
  %power = phi i64 [ %pp, %exact ], [ %pp, %small1 ], [ %hpower, %large1 ]
  %same = icmp eq i64 %ps, %zs
  br i1 %same, label %plus, label %minus

plus:
  %a1 = add i128 %v, %o
  %carry = icmp ult i128 %a1, %v
  %a2 = lshr i128 %a1, 1
  %a3 = or i128 %a2, -170141183460469231731687303715884105728
  %a4 = select i1 %carry, i128 %a3, i128 %a1
  %a5 = trunc i128 %a1 to i1
  %a6 = and i1 %a5, %carry
  %alost = or i1 %a6, %lost
  %a7 = zext i1 %carry to i64
  %apower = add i64 %power, %a7
  br label %round

; What is lost belongs to the smaller one: one more is taken away.
minus:
  %more = icmp uge i128 %v, %o
  %m1 = sub i128 %v, %o
  %m2 = sub i128 %o, %v
  %m3 = select i1 %more, i128 %m1, i128 %m2
  %m4 = zext i1 %lost to i128
  %m5 = sub i128 %m3, %m4
  %msign = select i1 %more, i64 %ps, i64 %zs
  %mzero = icmp eq i128 %m5, 0
  br i1 %mzero, label %none, label %round

none:
  br i1 %lost, label %any, label %nothing

nothing:
  %n0 = insertvalue {i64, i64, i64} {i64 0, i64 0, i64 0}, i64 %fpsr, 2
  ret {i64, i64, i64} %n0

round:
  %value = phi i128 [ %p, %numbers ], [ %a4, %plus ], [ %m5, %minus ]
  %sticky = phi i1 [ false, %numbers ], [ %alost, %plus ], [ %lost, %minus ]
  %exp0 = phi i64 [ %pp, %numbers ], [ %apower, %plus ], [ %power, %minus ]
  %sign = phi i64 [ %ps, %numbers ], [ %ps, %plus ], [ %msign, %minus ]
  %lead128 = call i128 @llvm.ctlz.i128(i128 %value, i1 true)
  %lead = trunc i128 %lead128 to i64
  %e127 = sub i64 127, %lead
  %exponent = add i64 %exp0, %e127
  %r1 = add i64 %exponent, 65534
  %in = icmp ult i64 %r1, 131069
  %norm = shl i128 %value, %lead128
  %top128 = lshr i128 %norm, 64
  %top = trunc i128 %top128 to i64
  %low = trunc i128 %norm to i64
  %halfway = icmp slt i64 %low, 0
  %rest = shl i64 %low, 1
  %restany = icmp ne i64 %rest, 0
  %some = icmp ne i64 %low, 0
  %beyond = or i1 %restany, %sticky
  %odd = trunc i64 %top to i1
  %tieup = or i1 %beyond, %odd
  %ups = and i1 %halfway, %tieup
  %inexact = or i1 %some, %sticky
  %one = zext i1 %ups to i64
  %sig0 = add i64 %top, %one
  %wrapped = icmp eq i64 %sig0, 0
  %flagat = add i64 %sf13, 18
  %flag = shl i64 1, %flagat
  %both = or i64 %flag, 32
  %known = and i64 %fpsr, %both
  %quiet = icmp eq i64 %known, %both
  %exactly = xor i1 %inexact, true
  %plain = or i1 %quiet, %exactly
  %ok = and i1 %plain, %in
  br i1 %ok, label %fit, label %any

fit:
  br i1 %wrapped, label %wrap, label %done

wrap:
  br label %done

done:
  %sig = phi i64 [ %sig0, %fit ], [ -9223372036854775808, %wrap ]
  %bias = phi i64 [ 65535, %fit ], [ 65536, %wrap ]
  %biased = add i64 %exponent, %bias
  %signword = shl i64 %sign, 17
  %word = or i64 %signword, %biased
  %d0 = insertvalue {i64, i64, i64} poison, i64 %sig, 0
  %d1 = insertvalue {i64, i64, i64} %d0, i64 %word, 1
  %d2 = insertvalue {i64, i64, i64} %d1, i64 %fpsr, 2
  ret {i64, i64, i64} %d2
}

; The same of any such numbers, in any precision.
define private {i64, i64, i64} @fused_any(i64 %xm, i64 %xw, i64 %ym, i64 %yw, i64 %zm, i64 %zw,
                              i64 %oldfpsr, i64 %what) nounwind {
  %xe = and i64 %xw, 131071
  %ye = and i64 %yw, 131071
  %ze = and i64 %zw, 131071
  %xb = or i64 %xm, %xe
  %yb = or i64 %ym, %ye
  %zb = or i64 %zm, %ze
  %x0 = icmp eq i64 %xb, 0
  %y0 = icmp eq i64 %yb, 0
  %z0 = icmp eq i64 %zb, 0
  %xi = icmp slt i64 %xm, 0
  %yi = icmp slt i64 %ym, 0
  %zi = icmp slt i64 %zm, 0
  %xg = sub i64 %xe, 1
  %xf = icmp ult i64 %xg, 131070
  %yg = sub i64 %ye, 1
  %yf = icmp ult i64 %yg, 131070
  %zg = sub i64 %ze, 1
  %zf = icmp ult i64 %zg, 131070
  %xn = and i1 %xi, %xf
  %yn = and i1 %yi, %yf
  %zn = and i1 %zi, %zf
  %xm0 = icmp ne i64 %xm, 0
  %ym0 = icmp ne i64 %ym, 0
  %xe0 = icmp ne i64 %xe, 0
  %ye0 = icmp ne i64 %ye, 0
  %xu1 = and i1 %xf, %xm0
  %xu2 = and i1 %xu1, %xe0
  %xu3 = xor i1 %xi, true
  %xu4 = and i1 %xu2, %xu3
  %xu = and i1 %xu4, %z0
  %yu1 = and i1 %yf, %ym0
  %yu2 = and i1 %yu1, %ye0
  %yu3 = xor i1 %yi, true
  %yu4 = and i1 %yu2, %yu3
  %yu = and i1 %yu4, %z0
  %xok1 = or i1 %xn, %x0
  %yok1 = or i1 %yn, %y0
  %xok = or i1 %xok1, %xu
  %yok = or i1 %yok1, %yu
  %zok = or i1 %zn, %z0
  %ok1 = and i1 %xok, %yok
  %ok2 = and i1 %ok1, %zok
  %unnormal = or i1 %xu, %yu
  %dmask = and i64 %oldfpsr, 2
  %dmasked = icmp ne i64 %dmask, 0
  %dusual = xor i1 %unnormal, true
  %dok = or i1 %dmasked, %dusual
  %sf = lshr i64 %what, 5
  %sf13 = mul i64 %sf, 13
  %dat = add i64 %sf13, 14
  %dbit = shl i64 1, %dat
  %dset = select i1 %unnormal, i64 %dbit, i64 0
  %fpsr = or i64 %oldfpsr, %dset
  %at = add i64 %sf13, 6
  %control = lshr i64 %fpsr, %at
  %rc = and i64 %control, 48
  %near = icmp eq i64 %rc, 0
  %ok3 = and i1 %ok2, %dok
  %ok = and i1 %ok3, %near
  br i1 %ok, label %numbers, label %no

no:
  ret {i64, i64, i64} {i64 0, i64 0, i64 -1}

numbers:
  %xs = lshr i64 %xw, 17
  %ys = lshr i64 %yw, 17
  %zs = lshr i64 %zw, 17
  %psg = lshr i64 %what, 2
  %zsg = lshr i64 %what, 3
  %ps1 = xor i64 %xs, %ys
  %ps2 = xor i64 %ps1, %psg
  %ps = and i64 %ps2, 1
  %zs1 = xor i64 %zs, %zsg
  %zsign = and i64 %zs1, 1
  %x128 = zext i64 %xm to i128
  %y128 = zext i64 %ym to i128
  %p128 = mul i128 %x128, %y128
  %p = zext i128 %p128 to i256
  %z = zext i64 %zm to i256
  %pp0 = add i64 %xe, %ye
  %pp = sub i64 %pp0, 131196
  %zp = sub i64 %ze, 65598
  %pz = icmp eq i128 %p128, 0
  %zz = icmp eq i64 %zm, 0
  %form = and i64 %what, 3
  %pc0 = lshr i64 %control, 2
  %pc = and i64 %pc0, 3
  %pcs = icmp eq i64 %pc, 0
  %pcd = icmp eq i64 %pc, 2
  %dyn0 = select i1 %pcd, i64 53, i64 64
  %dyn = select i1 %pcs, i64 24, i64 %dyn0
  %isdyn = icmp eq i64 %form, 0
  %issingle = icmp eq i64 %form, 1
  %fixed = select i1 %issingle, i64 24, i64 53
  %precision = select i1 %isdyn, i64 %dyn, i64 %fixed
  %wre0 = and i64 %control, 2
  %wre = icmp ne i64 %wre0, 0
  %high0 = select i1 %issingle, i64 127, i64 1023
  %high1 = select i1 %isdyn, i64 16383, i64 %high0
  %high = select i1 %wre, i64 65535, i64 %high1
  %low0 = sub i64 1, %high1
  %low = select i1 %wre, i64 -65534, i64 %low0
  br i1 %pz, label %noproduct, label %quick

; In 128 bits and one bit for all that is lost, which does for what is usual. A flag that has to be
; set is not: so operations that follow each other need not wait for its value.
quick:
  br i1 %zz, label %qround, label %qsum

qsum:
  %qgap = sub i64 %pp, %zp
  %qlgap = sub i64 0, %qgap
  %z16 = zext i64 %zm to i128
  %qup = icmp sge i64 %qgap, 0
  br i1 %qup, label %qsmall, label %qlarge

qsmall:
  %qs1 = icmp sgt i64 %qgap, 127
  %qs2 = select i1 %qs1, i64 127, i64 %qgap
  %qs3 = zext i64 %qs2 to i128
  %qs4 = lshr i128 %z16, %qs3
  %qs5 = shl i128 %qs4, %qs3
  %qslost = icmp ne i128 %qs5, %z16
  br label %qadd

qlarge:
  %qfits = icmp slt i64 %qlgap, 64
  br i1 %qfits, label %qexact, label %qshort

qexact:
  %qe1 = zext i64 %qlgap to i128
  %qe2 = shl i128 %z16, %qe1
  br label %qadd

qshort:
  %qh1 = sub i64 %qlgap, 63
  %qh2 = icmp sgt i64 %qh1, 127
  %qh3 = select i1 %qh2, i64 127, i64 %qh1
  %qh4 = zext i64 %qh3 to i128
  %qh5 = lshr i128 %p128, %qh4
  %qh6 = shl i128 %qh5, %qh4
  %qhlost = icmp ne i128 %qh6, %p128
  %qh7 = shl i128 %z16, 63
  %qhpower = sub i64 %zp, 63
  %qhnear = icmp slt i64 %qh1, 3
  %qhdiffer = icmp ne i64 %ps, %zsign
  %qhbad = and i1 %qhnear, %qhdiffer
  br i1 %qhbad, label %product, label %qadd

qadd:
  %qv = phi i128 [ %p128, %qsmall ], [ %p128, %qexact ], [ %qh5, %qshort ]
  %qo = phi i128 [ %qs4, %qsmall ], [ %qe2, %qexact ], [ %qh7, %qshort ]
  %qlost = phi i1 [ %qslost, %qsmall ], [ false, %qexact ], [ %qhlost, %qshort ]
  %qvshort = phi i1 [ false, %qsmall ], [ false, %qexact ], [ true, %qshort ]
  %qpower = phi i64 [ %pp, %qsmall ], [ %pp, %qexact ], [ %qhpower, %qshort ]
  %qsame = icmp eq i64 %ps, %zsign
  br i1 %qsame, label %qplus, label %qminus

qplus:
  %qp1 = add i128 %qv, %qo
  %qcarry = icmp ult i128 %qp1, %qv
  %qp2 = lshr i128 %qp1, 1
  %qp3 = or i128 %qp2, -170141183460469231731687303715884105728
  %qp4 = select i1 %qcarry, i128 %qp3, i128 %qp1
  %qp5 = trunc i128 %qp1 to i1
  %qp6 = and i1 %qp5, %qcarry
  %qplost = or i1 %qp6, %qlost
  %qp7 = zext i1 %qcarry to i64
  %qppower = add i64 %qpower, %qp7
  br label %qround

; What is lost belongs to one of the two: where that is taken away, one more is.
qminus:
  %qmore = icmp uge i128 %qv, %qo
  %qm1 = sub i128 %qv, %qo
  %qm2 = sub i128 %qo, %qv
  %qm3 = select i1 %qmore, i128 %qm1, i128 %qm2
  %qmtaken = xor i1 %qvshort, %qmore
  %qm4 = and i1 %qmtaken, %qlost
  %qm5 = zext i1 %qm4 to i128
  %qm6 = sub i128 %qm3, %qm5
  %qmsign = select i1 %qmore, i64 %ps, i64 %zsign
  %qmzero = icmp eq i128 %qm6, 0
  br i1 %qmzero, label %product, label %qround

qround:
  %qvalue = phi i128 [ %p128, %quick ], [ %qp4, %qplus ], [ %qm6, %qminus ]
  %qsticky = phi i1 [ false, %quick ], [ %qplost, %qplus ], [ %qlost, %qminus ]
  %qexp0 = phi i64 [ %pp, %quick ], [ %qppower, %qplus ], [ %qpower, %qminus ]
  %qsign = phi i64 [ %ps, %quick ], [ %ps, %qplus ], [ %qmsign, %qminus ]
  %qlead128 = call i128 @llvm.ctlz.i128(i128 %qvalue, i1 true)
  %qlead = trunc i128 %qlead128 to i64
  %qe127 = sub i64 127, %qlead
  %qexponent = add i64 %qexp0, %qe127
  %qinlow = icmp sge i64 %qexponent, %low
  %qinhigh = icmp slt i64 %qexponent, %high
  %qin1 = and i1 %qinlow, %qinhigh
  %qnorm = shl i128 %qvalue, %qlead128
  %qtop128 = lshr i128 %qnorm, 64
  %qtop = trunc i128 %qtop128 to i64
  %qlow64 = trunc i128 %qnorm to i64
  %qcut = sub i64 64, %precision
  %qkept = lshr i64 %qtop, %qcut
  %qback = shl i64 %qkept, %qcut
  %qrest = sub i64 %qtop, %qback
  %qfull = icmp eq i64 %qcut, 0
  %qless = sub i64 %qcut, 1
  %qless6 = and i64 %qless, 63
  %qhalf = shl i64 1, %qless6
  %qhighlow = icmp slt i64 %qlow64, 0
  %qlowrest = shl i64 %qlow64, 1
  %qlowany = icmp ne i64 %qlowrest, 0
  %qlowsome = icmp ne i64 %qlow64, 0
  %qabove0 = icmp ugt i64 %qrest, %qhalf
  %qequal0 = icmp eq i64 %qrest, %qhalf
  %qbeyond0 = or i1 %qlowsome, %qsticky
  %qbeyond1 = or i1 %qlowany, %qsticky
  %qatleast = select i1 %qfull, i1 %qhighlow, i1 %qequal0
  %qbeyond = select i1 %qfull, i1 %qbeyond1, i1 %qbeyond0
  %qover = select i1 %qfull, i1 false, i1 %qabove0
  %qodd = trunc i64 %qkept to i1
  %qtieup = or i1 %qbeyond, %qodd
  %qhalfup = and i1 %qatleast, %qtieup
  %qups = or i1 %qover, %qhalfup
  %qrest0 = icmp ne i64 %qrest, 0
  %qinexact = or i1 %qrest0, %qbeyond0
  %qone = zext i1 %qups to i64
  %qrounded = add i64 %qkept, %qone
  %qsig0 = shl i64 %qrounded, %qcut
  %qwrapped = icmp eq i64 %qsig0, 0
  %qsig = select i1 %qwrapped, i64 -9223372036854775808, i64 %qsig0
  %qw1 = zext i1 %qwrapped to i64
  %qbiased0 = add i64 %qexponent, 65535
  %qbiased = add i64 %qbiased0, %qw1
  %qsignword = shl i64 %qsign, 17
  %qword = or i64 %qsignword, %qbiased
  %qflagat = add i64 %sf13, 18
  %qflag = shl i64 1, %qflagat
  %qboth = or i64 %qflag, 32
  %qknown = and i64 %fpsr, %qboth
  %qquiet = icmp eq i64 %qknown, %qboth
  %qexactly = xor i1 %qinexact, true
  %qplain = or i1 %qquiet, %qexactly
  %qok = and i1 %qplain, %qin1
  br i1 %qok, label %qdone, label %product

qdone:
  %qr0 = insertvalue {i64, i64, i64} poison, i64 %qsig, 0
  %qr1 = insertvalue {i64, i64, i64} %qr0, i64 %qword, 1
  %qr2 = insertvalue {i64, i64, i64} %qr1, i64 %fpsr, 2
  ret {i64, i64, i64} %qr2

noproduct:
  br i1 %zz, label %zero, label %round0

zero:
  %isproduct0 = and i64 %what, 16
  %isproduct = icmp ne i64 %isproduct0, 0
  %alike = icmp eq i64 %ps, %zsign
  %keeps = or i1 %isproduct, %alike
  %zerosign = select i1 %keeps, i64 %ps, i64 0
  %zeroword = shl i64 %zerosign, 17
  %zr0 = insertvalue {i64, i64, i64} poison, i64 0, 0
  %zr1 = insertvalue {i64, i64, i64} %zr0, i64 %zeroword, 1
  %zr2 = insertvalue {i64, i64, i64} %zr1, i64 %fpsr, 2
  ret {i64, i64, i64} %zr2

round0:
  br label %round

product:
  br i1 %zz, label %round1, label %sum

round1:
  br label %round

sum:
  %gap = sub i64 %pp, %zp
  %up = icmp sge i64 %gap, 0
  br i1 %up, label %greater, label %less

greater:
  %gfar = icmp sgt i64 %gap, 120
  %gg = select i1 %gfar, i64 120, i64 %gap
  %gw = zext i64 %gg to i256
  %gv = shl i256 %p, %gw
  %go = select i1 %gfar, i256 1, i256 %z
  %gpf = sub i64 %pp, 120
  %gp = select i1 %gfar, i64 %gpf, i64 %zp
  br label %both

less:
  %lgap = sub i64 0, %gap
  %lfar = icmp sgt i64 %lgap, 180
  %lg = select i1 %lfar, i64 180, i64 %lgap
  %lw = zext i64 %lg to i256
  %lo = shl i256 %z, %lw
  %lv = select i1 %lfar, i256 1, i256 %p
  %lpf = sub i64 %zp, 180
  %lp = select i1 %lfar, i64 %lpf, i64 %pp
  br label %both

both:
  %v = phi i256 [ %gv, %greater ], [ %lv, %less ]
  %o = phi i256 [ %go, %greater ], [ %lo, %less ]
  %bp = phi i64 [ %gp, %greater ], [ %lp, %less ]
  %same = icmp eq i64 %ps, %zsign
  %added = add i256 %v, %o
  %more = icmp uge i256 %v, %o
  %vo = sub i256 %v, %o
  %ov = sub i256 %o, %v
  %diff = select i1 %more, i256 %vo, i256 %ov
  %diffsign = select i1 %more, i64 %ps, i64 %zsign
  %bv = select i1 %same, i256 %added, i256 %diff
  %bs = select i1 %same, i64 %ps, i64 %diffsign
  %gone = icmp eq i256 %bv, 0
  br i1 %gone, label %nothing, label %round

nothing:
  %nr = insertvalue {i64, i64, i64} {i64 0, i64 0, i64 0}, i64 %fpsr, 2
  ret {i64, i64, i64} %nr

round:
  %value = phi i256 [ %z, %round0 ], [ %p, %round1 ], [ %bv, %both ]
  %power = phi i64 [ %zp, %round0 ], [ %pp, %round1 ], [ %bp, %both ]
  %sign = phi i64 [ %zsign, %round0 ], [ %ps, %round1 ], [ %bs, %both ]
  %lead256 = call i256 @llvm.ctlz.i256(i256 %value, i1 true)
  %lead = trunc i256 %lead256 to i64
  %length = sub i64 256, %lead
  %e0 = add i64 %power, %length
  %exponent = sub i64 %e0, 1
  %inlow = icmp sge i64 %exponent, %low
  %inhigh = icmp slt i64 %exponent, %high
  %inrange = and i1 %inlow, %inhigh
  br i1 %inrange, label %fits, label %no

fits:
  %shift = sub i64 %length, %precision
  %biased = add i64 %exponent, 65535
  %signword = shl i64 %sign, 17
  %short = icmp sle i64 %shift, 0
  br i1 %short, label %exact, label %long

exact:
  %left = sub i64 64, %length
  %small = trunc i256 %value to i64
  %exactsig = shl i64 %small, %left
  %exactword = or i64 %signword, %biased
  %er0 = insertvalue {i64, i64, i64} poison, i64 %exactsig, 0
  %er1 = insertvalue {i64, i64, i64} %er0, i64 %exactword, 1
  %er2 = insertvalue {i64, i64, i64} %er1, i64 %fpsr, 2
  ret {i64, i64, i64} %er2

long:
  %shiftw = zext i64 %shift to i256
  %keptw = lshr i256 %value, %shiftw
  %kept = trunc i256 %keptw to i64
  %back = shl i256 %keptw, %shiftw
  %rest = sub i256 %value, %back
  %less1 = sub i256 %shiftw, 1
  %half = shl i256 1, %less1
  %above = icmp ugt i256 %rest, %half
  %tie = icmp eq i256 %rest, %half
  %odd = trunc i64 %kept to i1
  %tieup = and i1 %tie, %odd
  %ups = or i1 %above, %tieup
  %kept65 = zext i64 %kept to i128
  %upw = zext i1 %ups to i128
  %rounded = add i128 %kept65, %upw
  %precw = zext i64 %precision to i128
  %over0 = lshr i128 %rounded, %precw
  %over = icmp ne i128 %over0, 0
  %halved = lshr i128 %rounded, 1
  %final = select i1 %over, i128 %halved, i128 %rounded
  %sig0 = trunc i128 %final to i64
  %place = sub i64 64, %precision
  %sig = shl i64 %sig0, %place
  %carry = zext i1 %over to i64
  %be = add i64 %biased, %carry
  %word = or i64 %signword, %be
  %clean = icmp eq i256 %rest, 0
  %flagat = add i64 %sf13, 18
  %flag0 = shl i64 1, %flagat
  %flag = select i1 %clean, i64 0, i64 %flag0
  %newfpsr = or i64 %fpsr, %flag
  %mask = and i64 %fpsr, 32
  %quiet0 = icmp ne i64 %mask, 0
  %quiet = or i1 %quiet0, %clean
  %lr0 = insertvalue {i64, i64, i64} poison, i64 %sig, 0
  %lr1 = insertvalue {i64, i64, i64} %lr0, i64 %word, 1
  %lr2 = insertvalue {i64, i64, i64} %lr1, i64 %newfpsr, 2
  br i1 %quiet, label %done, label %no

done:
  ret {i64, i64, i64} %lr2
}
"""
