info functions fold
info functions operator
info variables weights
info types Ratio
list num::size
ptype num::Ratio
ptype Number
ptype num::Number
whatis num::Number
break num::size
break num::Ratio::operator+
tbreak matrix.cpp:140
break num::fold
break num::root
info breakpoints
run
info locals
print a
print b
print a.cells
print a.cells[1]
print a.cells[1][2]
print a(1, 2)
print product
print/x product
ptype a
whatis a
whatis product
ptype product.cells
print a.rows
print sizeof(a)
print &a.cells
print *a.cells._M_elems@1
set print pretty on
print a
set print pretty off
set print array on
print a
print weights
set print array off
set print array-indexes on
print weights
print floats
set print array-indexes off
print weights
print weights[1]@2
print floats
print floats[1] * 2
print/x floats
print/f floats
print big
print/x big
print sizeof(big)
print 10/3
print 10/3.0
print 10%3
print 1.0f/3
print 1e10
print 1e-5
print 100000000.0
print 5 == 5.0
print 'a' + 1
print "abc"
print sizeof("abc")
print 0x10 + 010
print -5 / 2
print 1 << 40
print 4294967296
print 0xffffffff
print (char)65
print (unsigned char)200
print (short)70000
print 3 > 2 > 1
print counter
continue
print *this
print other
info args
up
print total
finish
print $
print $.top
continue
print number
print number.index()
bt
whatis number
ptype number
up
print numbers
print numbers.size()
print numbers[2]
print length
delete 1
continue
info args
finish
print good
continue
print value
finish
next
print good
print *good
print bad
print good.has_value()
print good.value()
ptype good
whatis bad
continue
info args
bt
step
next
next
step
print x
print y
print seen
info frame
finish
print items
print start
delete
tbreak step
continue
bt
print by
next
print counter
finish
finish
finish
print stepper
print once
until 160
print row
print std::get<1>(row)
print name
print first
print last
info locals
print third == total
print third + total
print third.top * 2
print double(third.top)
print num::cube<double>
print larger
print larger(2, 3)
print total = third
print total
call step(10)
call counter
x/4dw &a
x/2fg weights
x/3fw floats
x/2gx &big
x/i $pc
x/3i $pc
print $xmm0
info registers rip
p/t 10
p/o 8
p/c 65
p/z 5
p/a main
p/a &counter
p/s name
p -array on -- weights
p -elements 2 -- weights
p -pretty -- third
continue
