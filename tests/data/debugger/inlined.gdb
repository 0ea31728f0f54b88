break weigh
break inlined.c:8
tbreak inlined.c:7
break first
break inlined.c:weigh
break inlined.c:1
info breakpoints
run
bt
info breakpoints
continue
bt
continue
bt
up
disable 1.2
continue
bt
continue
info breakpoints
clear weigh
disable
continue
