info source
info files
info target
info line Animal::weigh
info line nosuch
info line classes.cpp:5000
list Animal::weigh
info source
break Animal::weigh
run
hbreak Animal::count
thbreak Animal::volatile_one
tbreak classes.cpp:7 if item_ == 5
tbreak Open::f if a == 0
info breakpoints
continue
info source
continue
continue
info breakpoints
