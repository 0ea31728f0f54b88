info functions phase
info line phase_1
info address main
info symbol main
list phase_4
list
list -
list func4,+5
list 1,8
break explode_bomb
b phase_1
b lab.c:58
tbreak main
info breakpoints
run
info args
p argc
p argv[0] != 0
p argv[1]
p *lines@3
p lines
p/x argc
ptype lines
whatis phases
whatis phases[0]
next
p phases
p *phases[1]
p phases[2]
c
bt
info frame
p line
x/s line
x/s $rdi
x/26cb line
x/4xb line
x/2wx line
p $rip
p $pc
p $sp
p $rsp
p $eflags
info registers rdi rip
disas
disassemble /r phase_1
x/6i $pc
stepi
nexti
x/i $pc
step
bt
up
down
frame 1
finish
p strings_not_equal("abc", "abd")
p strings_not_equal("abc", "abc")
c
info locals
p numbers
p/x numbers
p numbers[1]@3
p *numbers@6
p &numbers[2]
p &numbers[3] - numbers
x/6dw numbers
x/6dw &numbers
x/3uw numbers+3
p/d sizeof(numbers)
output numbers
output/x i
print i
cond 3 i == 4
info b
c
p i
printf "%d and %s\n", numbers[i], line
echo done\n
delete 3
break func4 if target == middle
b func4 if low > 5
c
bt 2
bt -1
where
frame 2
info locals
p target
up 5
down 100
finish
tb phase_5
c
p host_table
p/c host_table
p/x host_table
p host_table[3]
p &host_table
p (char)host_table[0]
p/d 'a'
p line[0] & 0xf
watch text[5]
c
p text
info watchpoints
d
b phase_6
c
p nodes[0]
p nodes
p *nodes[0].next
p nodes[0].next->next->value
p/x nodes[5]
ptype struct node
whatis nodes
p sizeof(struct node)
x/3dw &nodes[1]
x/2gx &nodes[2]
until 119
advance 123
p picked
p *picked[0]
p picked[0]->value
p *picked[0]@2
p score
n
p score
p phases_left
set var phases_left = 42
p phases_left
print phases_left = 7
p phases_left++
p $
p $$
p $$3
p $1
show convenience
set $counter = 3
p $counter * 2
p $nosuch
info display
display phases_left
display/x score
finish
undisplay 1
next
info source
info sharedlibrary
kill
info registers
