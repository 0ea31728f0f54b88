break work
run
bt
info args
info locals
p n
p n@entry
p name
p name@entry
break note
continue
bt
p what
p what@entry
up
info args
p n
p n@entry
info locals
info frame
down
finish
continue
bt
continue
bt
up
p n
p n@entry
delete
break lost
continue
bt
info args
next
info args
next
p b
p a
p c
info frame
set print entry-values both
bt
info args
set print entry-values only
bt
set print entry-values no
bt
set print entry-values preferred
bt
set print entry-values if-needed
bt
set print entry-values compact
bt
set print entry-values default
show print entry-values
delete
break make
continue
bt
finish
p $
p $.left
ptype $
break scale
continue
info args
finish
tbreak tail
continue
tbreak lost
continue
bt
p c@entry
info frame
stepi
nexti
x/3i $pc
info line
info symbol $pc
disassemble /s lost
info address name
info address sink
p sink
p &sink
p store
info types pair
ptype/o struct pair
ptype/o p
finish
info breakpoints
continue
info locals
p got
p p
kill
info breakpoints
