b early
b in_header
r
info macro VALUE
p VALUE
p CMDLINE
info macro CMDLINE
info macro FLAG
info macro __STDC__
info macro LATE
info macro AFTER_HEADER
info macro HEADER_ONE
info macro EOF
macro expand CONCAT(x, y)
p CONCAT(x,y)
macro expand TEXT(a  +  "b\n")
macro expand XTEXT(HEADER_ONE + 1)
macro expand TEXT(HEADER_ONE)
macro expand LOG("%d", 1, 2)
macro expand LOGN("x", 3)
macro expand SELF
macro expand PAIR(1,(2,3))
macro expand F() + F
macro expand F ()
macro expand NEG-NEG
macro expand -NEG
macro expand a EMPTY b
macro expand EMPTY
macro expand VALUE VALUE
macro expand CONCAT(HEADER_ONE, 2)
macro expand "VALUE" 'V'
macro expand x.VALUE
macro expand PAIR(VALUE,EMPTY)
macro expand PAIR(1)
macro expand PAIR(1,2
macro expand
macro nosuch
macro define
macro define Q 7
macro define VALUE 99
p VALUE
info macro VALUE
info macro Q
macro list
macro undef VALUE
p Q*2
up
p VALUE
info macro VALUE
info macro LATE
info macro -a VALUE
info macro --
info macro
p LATE
down
c
info macro HEADER_ONE
info macro AFTER_HEADER
info macro VALUE
p HEADER_ONE
up
n
n
p LATE
p i_count
whatis VALUE
ptype VALUE
p sizeof(VALUE)
p/x VALUE
x/d &i_count
display VALUE + r
info display
print VALUE == 13 && CMDLINE
b 25 if r > VALUE
info b
c
p $_siginfo.si_signo
set var r = VALUE
p r
output VALUE
printf "%d\n", VALUE
call F()
list VALUE
info source
p NULL
p EOF
p stdin
info line VALUE
