break fill_pot
break nosuch
set breakpoint pending on
break add_water
tbreak heat_pot
break libpending_late.c:9 if hot > 3
break nowhere.c:3
info breakpoints
run
info breakpoints
bt
continue
info breakpoints
continue
continue
continue
info breakpoints
continue
continue
info breakpoints
run
info breakpoints
continue
disable 2
continue
delete
continue
