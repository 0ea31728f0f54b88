break squares
run
whatis square(2)
ptype square(2)
print sizeof(square(2))
set var asked = square(3)
print asked
printf "%d %d\n", square(4), asked
output square(2)
x/s sheet.title
print square(square(2))
print square(2) == 4 && square(3) == 9
print weigh(&sheet, 0) + square(2)
call (void)square(2)
call square(1)
print $_exitcode
tbreak square
print square(square(2))
bt full
up
info locals
info args
list
print $_
info source
frame apply all print 1
frame apply all -q print $sp != 0
thread apply all bt 2
down
print square
print *square
print &n
set var n = 11
next
print r
return 5
bt
display square(2)
next
undisplay 1
break square if n > 2
ignore 2 1
print squares(4)
info breakpoints
print i
up
print i
print total
finish
bt
disable 2
print squares(4)
enable 2
print add_mark(&sheet, 9, 2.5)
print sheet.used
print heaviest(&sheet)
print heaviest(&sheet).id * 2
tbreak weigh if from == 2
print weigh(&sheet, 0)
bt
finish
finish
up
finish
bt
print $
catch syscall write
call report("caught")
bt -4
continue
continue
bt 1
delete
tbreak complain
call complain(1)
next
next
next
info program
print failures
bt -3
signal 0
print failures
bt
info signals SIGUSR1
handle SIGUSR1 nostop noprint nopass
print complain(3)
print failures
tbreak peek
print peek(0)
stepi
next
next
bt
print $_siginfo.si_signo
print $_siginfo._sifields._sigfault.si_addr
up
finish
bt
frame 0
print fib(6)
print square(3, 4)
print square()
print nosuch(3)
print square("a")
print main
continue
