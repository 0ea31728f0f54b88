info line fill
list fill
list
list 1,12
p grid
p sizeof grid
p sizeof(struct shape)
ptype struct shape
whatis grid[0]
p &grid[1][2]
p ratio
p banner
p words
p *words@4
p/x 255
p 7 / 2.0
p RED | BLUE
p (enum color)5
p (enum color)6
info address fill
info symbol main
break main
tbreak fill
run
p argc
p argv[0][0]
next
p shapes[0].label
p shapes[0]
c
bt
info args
finish
p grid
p grid[1]
p/x grid[2]
x/4dw grid
x/2xw &grid[1]
p *grid@2
p numbers
p numbers[1]@3
p &numbers[4] - &numbers[0]
break insert if at == 0
info breakpoints
c
bt
p word
p at
up
p *word
p **word
down
finish
p *root
p root->word
ignore 3 1
c
bt
p *at
frame 1
info locals
p at->word
p $_
delete 3
break depth
tbreak mean
c
p *all@count
p all[1].u.circle
p all->area
p *all->area
p all[0].corner[1]
p count
step
next
step
info frame
bt
p s->u
p s->u.box.w * 2
p *s
finish
watch sum
c
c
info watchpoints
delete
handle SIGUSR1 stop print
info signals SIGUSR1
b on_signal
c
p $_siginfo.si_signo
c
bt 1
p number
p signals
finish
catch syscall exit_group
delete
tbreak parse
c
p text
p *out
display *out
display/i $pc
info display
next
next
next
p value
p end
p errno
undisplay 1
set var value = 99
p value
c
bt
p none
p *none
p $_siginfo._sifields._sigfault.si_addr
info registers rip
x/i $pc
p $_exitcode
info program
c
bt
p deep
p signals
p grid[0]
