list main
list parse
info source
info line add
info functions accept
info types level
info variables history
break parse if level == 20
break add
tbreak main
info breakpoints
run
bt
p argc
p input
p input[1]
p *input@3
p config
p &config
p levels
p levels[1]
p levels[1][2]
p/x big
p/o 8
p/t 10
p/x levels
p sizeof(struct setting)
ptype struct setting
ptype config_t
whatis config.accept
ptype enum level
next
p config.accept
c
info args
p line
p *line@9
p level
p equal
n
p equal
p equal - line
x/s equal
x/9cb line
x/2xg $sp
info frame
up
p made
p *line
info locals
down
finish
p $
p *$
p $.name
p $.value
p $.mode
c
bt 1
p *setting
p setting->name
p setting->value.number
p to->count
p *to
p to->accept
watch config.count
rwatch errors
info watchpoints
c
c
c
delete 5
p errors
c
info breakpoints
delete 2
p history
p history[0] + 1
p/f history
p $_exitcode
tbreak weigh
c
delete 4
c
p here
display depth
display/x here
info display
next
next
step
bt
frame 1
info locals
p from->name
p *from->next
p from->next->next->value.text
p config.head->level
p (enum level)10
p HIGH
p HIGH + 1
p/d HIGH
undisplay 2
finish
up
tbreak 95
c
p weight
set var weight = 7
p weight
print weight = 9
p weight * 2 + 1
c
bt
p $_siginfo.si_signo
p $_siginfo._sifields._sigfault.si_addr
p found
p found->name
p name
x/i $pc
x/3i $pc
info registers rip
p $pc
up
info locals
p missing
p *config.head
p config.head->next->name
info symbol lookup
info address config
p lookup
p *lookup
p main
info program
kill
info locals
