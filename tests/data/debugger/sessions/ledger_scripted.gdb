set args crash now
show args
define total
  set $sum = 0
  set $i = 0
  while $i < $argc
    set $sum = $sum + $i
    set $i++
  end
  if $sum > 1
    printf "many: %d\n", $sum
  else
    printf "few: %d\n", $sum
  end
end
total
total a b c
document total
Sum the numbers of arguments.
Two lines.
end
help total
show user total
define shout
echo $arg0 $arg1\n
printf "%d\n", $argc
end
shout hello world
if 1 == 2
echo yes\n
else
echo no\n
end
set $n = 3
while $n > 0
  output $n
  echo \n
  set $n = $n - 1
  if $n == 1
    loop_break
  end
end
break fill
commands
silent
set $seen = count
printf "fill %d\n", $seen
if $seen > 5
  echo large\n
end
end
break average
commands 2
bt 1
info args
end
run
p $seen
continue
commands 1
end
continue
info breakpoints
p $_siginfo
delete
continue
p $_siginfo
p $_siginfo.si_signo
p $_siginfo._sifields._sigfault.si_addr
p $_siginfo._sifields._sigfault
ptype $_siginfo
ptype $_siginfo._sifields._sigfault
whatis $_siginfo
p/x $_siginfo.si_code
bt
frame
p nowhere
p *nowhere
info locals
x/i $pc
p $_exitcode
p $_exitsignal
info registers rip
up
kill
p $_exitcode
info frame
bt
p first
p table
p total_calls
x/s words[1]
info threads
info display
info locals
finish
next
