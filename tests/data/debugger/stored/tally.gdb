break squares
run
break square
print square(7)
bt
info frame
up
info frame
up
info frame
print upto
info locals
down
down
print n
info args
next
next
print r
next
next
bt
print $
print square(8) + 1
finish
print $
bt
call squares(2)
bt
print square(5)
bt
frame 2
info locals
frame 3
frame 5
print upto
frame function main
finish
bt
continue
continue
bt
info breakpoints
delete 2
break fib if n == 2
print fib(4)
bt
print n
up
print n
print left
finish
finish
bt
print fib(3) * 10
condition 3
print fib(1)
print fib(2)
bt 3
bt -2
frame 1
print $pc == $rip
step
step
step
bt
delete 3
continue
bt
print peek(0)
bt
print *p
up
up
print upto
down
print peek(1)
bt
continue
info program
run
print peek(0)
return
bt
set unwindonsignal on
show unwindonsignal
print peek(0)
bt
print peek(&asked)
set unwindonsignal off
show unwindonsignal
print complain(4)
bt
print failures
up
finish
print failures
continue
bt
print failures
handle SIGUSR1 nostop noprint
call complain(1)
print failures
tbreak on_usr1
call complain(2)
bt
finish
bt
print failures
tbreak name_length
print name_length("a name")
print name
print name[2]
next
step
step
step
bt
call report("now")
tbreak weigh
call report("then")
bt
finish
print heaviest(&sheet)
tbreak heaviest
print heaviest(&sheet).weight
next
print best
finish
print $.weight
tbreak square
print square(9)
return
bt
print asked
tbreak square
print square(9)
up
finish
bt
tbreak square
print square(9)
tbreak 44
continue
jump 45
bt
tbreak square
print square(11)
until
advance 46
stepi
nexti
info registers eflags
frame
display asked
print square(2)
tbreak square
print square(2)
next
next
finish
undisplay 1
watch failures
print complain(1)
bt
continue
delete
tbreak square
print square(3)
kill
bt
info breakpoints
start
print square(4)
break square
print square(4)
run
bt
up
bt
info program
delete
print leave(4)
bt
print square(1)
