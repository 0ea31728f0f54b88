break main
run
next
next
next
bt
print list
print *list
p *list->next
p/x *list
p list->name
p o
p &o
p o.grid
p table
p words
p *words@2
p byte
p pi
p half
p yes
p fl
p global + 3 * 2
p (char)global
p sizeof(node_t)
p sizeof(int)
p &global
p main
p &main
p twice
p $rip
p $sp
p argc
p *argv
p argv[0][0]
p/x -1
p/t 10
p/c 65
p/o 8
p/d 'a'
p 'a'
p "abc"
p 10/3.0
p 7/2
p -7/2
p -7%3
p 1==2
p list->next->next
p list == 0
p !list
p (long)list & 0xff
p GREEN
p (enum color)5
p (enum color)6
p o.u
p list->color
whatis list
whatis *list
whatis o.grid
whatis &o.grid
whatis main
whatis words
ptype list
ptype struct outer
ptype union both
ptype enum color
ptype node_t
whatis node_t
x/4xw &global
x/2s words[0]
x/3dg table
x/8xb list->name
x/s list->name
break sum if depth == 1
continue
info args
up
info locals
down
finish
print $
p $1
p $$2
set var global = 99
p global
p global = 5
p global += 3
p list->id = 77
print list->id
info line twice
tbreak twice
info breakpoints
continue
