break note
run
bt
info frame
finish
continue
up
p n
p n@entry
p name
info args
p $rip
tbreak lost
continue
bt 1
info locals
p a+b
p/x b
advance scale
info registers rip
delete
finish
