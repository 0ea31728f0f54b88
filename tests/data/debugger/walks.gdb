list
list
list -
list sum
list 10,12
info breakpoints
print global
print main
bt
next
start
display list
display/x global
info display
next
next
step
bt
step
step
step
bt
finish
undisplay 1
break twice
ignore 3 2
continue
info breakpoints
p n
continue 1
condition 3 n > 100
until
advance 57
info locals
p nosuch
p list->nosuch
p *
p 1 +
p (struct nosuch*)0
p *(int*)0
frame 9
up
down
frobnicate
info nothing
tbreak nosuch
break a.c:999
break *0x401615
delete 1
delete
info line 12
print $nonexistent
set $x = 5
print $x * 2
print $x++
print $x
print 1,2
print argc ? 10 : 20
print &list->next
print list->name[0]@4
print/x table
print -5 / 2.5
print 5u - 6
print 1 << 4 | 3
print 'A' + 1
print "abc"[1]
print sizeof(struct node)
print (long double)1.5
print 0x7fffffff + 1
print 4294967296
print 10000000000 * 3
print !0
print ~5
print 5 > 3 && 2 > 1
ptype int*
ptype unsigned long
whatis 1+1L
whatis 'a'
whatis 1.0f
whatis (char)1
whatis &table[3]
whatis table[0]
info symbol global
info line sum
stepi
stepi
nexti
p $rax = 0x1122334455667788
p $eax
p/x $ax
p $al
p/x $ah
whatis $eax
whatis $al
p $al = 5
p/x $rax
p $ah = 7
p/x $rax
p $ax + $al
p $eax = 9
p/x $rax
