break main
run
break leaf if n == 2
next
next
next
info locals
delete 2
print a
break leaf if n == 1
break down if n == 1
next
bt
up
up
finish
print a
delete
finish
finish
print sumup(4)
print down(3) + leaf(1) * 2
print leaf(leaf(sumup(2)))
output leaf(-1)
call (char)leaf(64)
print $2
advance 14
print $2
print $2.v
print a
info breakpoints
tbreak leaf if ((struct s *)0)->v == 3
info breakpoints
continue
info breakpoints
break 17
break 18
condition 7
delete 6-9
set $i = 0
while $i < 3
set $i = $i + 1
if $i == 2
echo two\n
else
output $i
echo \n
end
end
define twice
print $arg0 * 2
print $argc
end
twice 21
document twice
Doubles it.
end
help twice
break leaf
ignore 8 2
commands
silent
print n
print n * 2
continue
end
tbreak 17
continue
info breakpoints
delete
echo no newline
echo  and\ttab\101\n
output 5
echo \n
set args one "two three"
show args
unset env
set env PROBE=yes
show env PROBE
info line
continue
break leaf if nosuch == 1
