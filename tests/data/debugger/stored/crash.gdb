info signals SIGUSR1
handle SIGUSR1 nostop noprint pass
handle SIGUSR1 stop print
info line main
info scope descend
info scope main
list lookup
break lookup if depth == 1
break crash.c:45
b *main
info b
r
p $_
x/3i $pc
p $rip
info registers rip
p argc
si
c
p $_siginfo.si_signo
p $_siginfo._sifields._kill.si_pid > 0
bt
signal 0
info args
p key
p *key@5
p table
p table[1]
p/x table[2]
p table[1].as.text
p table[2].as
p table[2].as.real
p table[0].kind
p/d table[2].kind
p table[2].kind == REAL
p table[3].key
p *table[2].parent->parent
ptype option_t
ptype struct option
ptype table[0].as
whatis table[0].kind
ptype/o struct option
whatis &table[1]
p &table[1]
p &table[1].as
p *&table[1]
p raw
p/x raw
p/x *(unsigned int *)raw
p/x *(short *)&raw[2]@2
p/t raw[4]
p/o 64
p/c 65
p/z 5
p/a main
p/a lookup
p weights
p weights[1]
p weights[1][2] * 8
p -3 / 2
p 7 % 3
p 1.0 / 3
p 10/3.0
p !argc
p ~0
p 1 << 4
p 0x10 + 010
p 'A' + 1
p "abc"
p sizeof("abc")
p "abc"[1]
p empty
p alarms
p alarms == 10
x/8xb raw
x/2xw raw
x/1xg raw
x/8ub &raw
x/3fw weights
x
x/s table[1].as.text
x/2s table[0].key
p $_
p $__
up
info frame
info locals
p $rip
down
finish
p $
p $$2
info b
disable 1
info b 1
enable once 1
delete 2
c
bt
bt full
bt -full 1
p option
p *option
p option->parent
p option->parent->parent
p $_siginfo.si_signo
p $_siginfo._sifields._sigfault.si_addr
x/i $pc
info registers rax
p note
p depth
frame 1
p depth
frame 2
info locals
f 3
up
down 2
frame
info frame
p $_exitcode
list
list descend
info source
p $_isvoid($_exitcode)
p $_isvoid($nosuch)
p $_siginfo.si_code
info program
tbreak nowhere
jump 9999
call lookup("ratio", 0)
call (long)lookup("name", 5) > 0
call squared(5)
print squared
c
info frame
