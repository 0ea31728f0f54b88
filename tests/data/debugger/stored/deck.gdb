list enter
list
list 1,5
info line enter
break enter
break sub
info breakpoints
run
backtrace
info frame
finish
p $
p *$
p $$2
next
step
info args
info locals
p fresh
p *fresh
p &fresh->next
p sizeof(cell_t)
p sizeof *fresh
ptype cell_t
ptype operation
whatis table
p table
p *table@2
p table[0](2, 3)
p sum(top)
p matrix
p matrix[1]
p &matrix[1][2]
p *matrix@2
ptype matrix
p mode
p/d mode
p BUSY
p (enum mode)5
p word
p/x word
p word.f
p/t word.b[0]
p word.b
output depth_now
p depth_now++
p depth_now
set var depth_now = 1
p depth_now
condition 1 value > 2
info breakpoints
continue
p value
p label
p *label@3
x/s label
x/2i $pc
x/3xw &word
x/2dg &matrix
p $rip
info registers rip
p/x $eflags
p $eflags
up
info locals
p names
p names[i]
p *names@i
p argv[0]
p *argv@argc
p text
p/x text[0]
p big
p/x big
p -5 / 2
p 5 % 3
p 5.0 / 2
p 1 == 1
p 'a'
p "abc"
p sizeof(int)
p LIMIT
info macro LIMIT
macro expand LIMIT + 1
down
delete 1
tbreak apply
continue
info breakpoints
step
display op
display/i $pc
next
info display
undisplay 1
next
watch errors
rwatch mode
info watchpoints
handle SIGUSR1 nostop noprint pass
info signals SIGUSR1
delete 2
continue
p errors
bt
p $_exitcode
continue
delete
break leave
info breakpoints
continue
call leave(&got)
p got
info symbol leave
info address leave
info address errors
info scope enter
info source
p $_
p $__
info variables ^top
info all-registers rip
kill
info breakpoints
run
p leave(0)
bt
finish
p sum(0)
p enter(9.5, "nine")
p *top
p top->label
p *top->next
