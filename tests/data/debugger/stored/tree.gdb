break insert if key == 40
info breakpoints
run
info breakpoints
bt
p *t
p root->left->name
p/x keys
up
info locals
p keys
p keys[1]@3
p &keys[2]
p depth(root)
p avg(keys, 7)
ptype struct node
whatis insert
p c
p (enum color)6
p un
p/f un.i
x/4dw keys
x/s root->name
finish
tbreak depth
continue
display t->key
display/x $sp
next
step
info display
undisplay 1
watch total
info watchpoints
delete
info source
info sharedlibrary
info line depth
list depth
info symbol depth
info address total
p $_exitcode
continue
p $_exitcode
info frame
