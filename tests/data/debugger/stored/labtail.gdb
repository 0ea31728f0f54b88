tb phase_5
r
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
