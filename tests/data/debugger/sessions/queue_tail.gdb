handle SIGUSR1 nostop noprint
b last_link
r
bt
p n
up
info frame
p n
info locals
p $rsp
p $pc
x/2i $pc
info registers rip
up
info frame
p n
info locals
down
down
info frame
frame function middle_link
frame 1
p $_caller_is("middle_link", 1)
p $_caller_is("first_link", 2)
p $_any_caller_is("first_link")
bt 1
bt -1
bt full
frame apply all p $pc
finish
tbreak last_link
r
s
n
bt
n
info frame
n
info frame
n
bt
up
finish
