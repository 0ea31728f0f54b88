break sum_to
condition 1 n == 2
info breakpoints
run
bt
continue
ignore 1 1
info breakpoints
disable
info breakpoints
enable once 1
tbreak 128
continue
disable 1
continue
bt full
delete
info breakpoints
info registers rip
info registers eflags
info signals SIGSEGV
info signals 11
handle SIGSEGV nostop noprint
handle SIGUSR1 nopass
handle 14 nostop
handle SIGFOO stop
p $_siginfo
info functions square
info functions -q nosuchthing
info functions nosuchthing
info line nosuch
break nosuch
break ledger.c:9999
break other.c:3
tbreak *main
tbreak fill
info breakpoints
clear fill
delete 99
clear 4
disable 99
condition 99 1
condition
ignore
ignore 1
frame 7
p nosuch
p first->nosuch
p table.x
p *5
p 1 +
p )
ptype struct nosuch
ptype nosuch
whatis struct nosuch
x/2x nosuch
x 0
p *(int*)0
list nosuch
list 999
info nosuch
nosuch
set nosuch 1
show nosuch
info frame nosuch
undisplay 9
thread 9
up 2 3
info signals nosuch
break average
run crash
p $xmm0
p $ymm0
whatis $xmm0
ptype $xmm0
ptype $ymm0
whatis $rax
ptype $rax
whatis $st0
p $st0
info registers xmm0
info registers st0
info registers mxcsr
p $mxcsr
p $xmm0.v4_float[1]
p $xmm0.v2_double
info registers rip
info registers rbp rsp
up
thread name boss
thread find boss
thread find nosuch
thread name
