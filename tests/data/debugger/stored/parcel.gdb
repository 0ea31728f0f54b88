break check
run
break post::weight(int)
print post::weight(4)
bt
info frame
up
up
print zone
print first
down
down
print n
finish
bt
print post::weight(4)
next
next
next
bt
print post::nested(1)
bt
up
print depth
up
print depth
up
up
print local
finish
down
bt
finish
finish
bt
print post::nested(2)
print post::weight(7)
bt
continue
continue
info breakpoints
delete 2
run
print first.price()
break post::Parcel::price
print first.price()
bt
print *this
print grams_
next
print base
finish
print first.price() + 1
up
print zone
delete 3
tbreak post::Parcel::repack
call first.repack(7)
print more
print this->grams_
next
next
finish
print first.grams()
call first.repack(1)
print first.grams()
break post::Express::price
up
print fast.price()
bt
step
step
step
bt
finish
bt
delete
print post::total(all)
tbreak post::total
print post::total(all)
print all.size()
next
next
print sum
info locals
finish
print post::crash(0)
bt
print where
up
up
print found
down
down
return
bt
set unwindonsignal on
print post::crash(0)
bt
set unwindonsignal off
print first.repack(6000)
bt
show unwind-on-terminating-exception
print first
print post::weight(2.0)
tbreak post::weight(double)
print post::weight(2.0)
bt
next
print w
finish
tbreak post::larger<int>
print post::larger<int>(3, 4)
next
next
next
bt
break post::label
call post::label(first)
print p
print p.grams_
info frame
next
next
bt
finish
bt
delete
print first < fast
tbreak 28
print first < fast
bt
print small.grams_
finish
whatis $
tbreak post::nested if depth == 1
print post::nested(3)
bt
up 3
print depth
up 2
info frame
frame 0
kill
bt
run
info breakpoints
start
bt
next
print small.price()
break 55
print post::nested(1)
