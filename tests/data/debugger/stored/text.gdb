info types mode
info types color
ptype enum color
ptype struct node
ptype shape
ptype area_fn
ptype struct shape
whatis areas
whatis areas[0]
whatis matrix
whatis matrix[0]
ptype matrix
print matrix
print matrix[1]
print matrix[1][2]
print *matrix
print **matrix
print &matrix[1]
print sizeof(matrix)
print names
print big
print/x big
print small
print/x small
print/u small
print letter
print/d letter
print ratio
print ratio * 10
print buffer
list insert
list depth,+5
list 60,64
info line insert
info address buffer
info symbol buffer
info scope depth
break insert if total_words == 3
break depth
info break
run
bt
print *at
print at
print word
print *word@4
print root
print *root
print *root->right
print root->right->word
print root->right->left->word
print *root->left
print $
print $$2
display word
display/x total_words
display
info display
continue
undisplay 1
bt 2
bt -1
print at->word
continue
continue
bt
up
print at->word
up
print at->word
down
print left
info locals
frame 0
finish
finish
info breakpoints
delete 2
watch total_words
rwatch small
awatch ratio
info watchpoints
disable 4 5
tbreak circle_area
continue
print *s
print s->circle
print s->circle.center.x
print s->corners
print s->name
print s->kind
print s->depth
print/x s->filled
print &s->circle
print s->circle.radius * 2
ptype s
ptype s->circle
whatis s->corners
whatis &s->corners[0]
ptype/o shape
up
print shapes
print shapes[0].name
print shapes[1].corners[1]
print &shapes[1]
print *shapes@1
print areas[i]
print areas
print i
print sum
print areas[1](&shapes[1])
print circle_area(&shapes[0])
info locals
set print pretty on
print shapes[0]
set print pretty off
set print union off
print shapes[0]
set print union on
print counts
print counts[1]@2
print/x counts
p line
p/s line
p/c line[0]@3
x/s line
x/5cb line
x/2s line
x/4dw counts
x/2gx shapes
x/2fg &shapes[0].circle
x/fw &ratio
x/a areas
x/2a areas
x/i $pc
x/3i main
info registers rip
p $sp
p $pc
p $rax
step
finish
until 139
next
print length
print buffer
x/s buffer
p strlen(buffer)
p (int)strlen(buffer)
p strcmp("a", "b")
p sizeof(buffer)
p buffer[0]
p &buffer[5]
p *buffer@5
p (char*)buffer
p (long)&buffer == (long)buffer
handle SIGALRM nostop print
info signals SIGALRM
next
next
print interrupts
handle SIGALRM stop print
tbreak fail
continue
print where
print *where
print $_siginfo
continue
bt
print $_siginfo.si_signo
print $_siginfo._sifields._sigfault.si_addr
info program
info frame
up
print nowhere
print length
info locals
frame function main
info source
kill
info locals
print buffer
print total_words
info registers
print $pc
show args
set args a b c
show args
run
bt
continue
