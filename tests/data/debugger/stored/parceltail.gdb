break check
run
print first.repack(6000)
bt
print first
print first.grams()
set unwind-on-terminating-exception off
show unwind-on-terminating-exception
print first.repack(6000)
bt -3
kill
set unwind-on-terminating-exception on
run
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
tbreak 26
print first < first
bt
print first.grams_
finish
whatis $
tbreak post::Parcel::Parcel
print post::Parcel(3)
print post::nested(3)
break post::nested if depth == 1
print post::nested(3)
backtrace full 2
up 2
info locals
print depth
print $_caller_is("nested", 1)
print $_any_caller_is("check")
frame function check
print zone
print first.price()
until
next
bt
advance 103
bt
info symbol $pc
print $pc
tbreak post::weight(int)
print post::weight(31)
continue
bt 2
print local
next
ignore 5 1
print post::nested(1)
info breakpoints
print post::nested(1)
delete
return
bt
