break leave
run
up
info locals ^t
info locals -t char
info locals -q nosuch
info locals nosuch
info locals -t int ^g
info args
info args argc
info args nosuch
info args -t char
info args -q nosuch
down
info args
info locals old
