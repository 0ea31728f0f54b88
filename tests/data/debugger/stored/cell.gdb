info functions set_
info variables book
info types cell
list evaluate
list 60,+4
ptype struct sheet
ptype cell_t
ptype operation
ptype enum kind
ptype/o struct formula
whatis book.cells
whatis book.cells[0]
whatis &book
print book
print primes
print primes[1]@3
print/x raw
print/d raw
print/c raw[1]
print raw
print wide
print pi
print pi * 2
print (int)pi
print words
print *words@2
print words[1][1]
print sizeof(struct sheet)
print sizeof(book.cells)/sizeof(book.cells[0])
print &book.cells[1][2]
print (long)&((struct sheet *)0)->stats
print &((cell_t *)0)->as
break set_number
tbreak set_formula
break evaluate
ignore 3 2
info breakpoints
run
bt
info args
print *cell
print cell->as
print cell->as.number
print/x number
print cell->row
print cell->kind
print (enum kind)3
print NUMBER | TEXT
next
next
print *cell
print $.as.number
print $_
finish
next
continue
delete 1
continue
print apply
print *left
print left->as.number + right->as.number
print apply(3, 4)
print *apply
print mul(5, 6)
print add
finish
info breakpoints
continue
bt
print evaluations
print cell->kind
print cell->as.formula
print *cell->as.formula.left
print cell->as.formula.left->as.number
display evaluations
display/x cell->row
next
next
next
info display
step
bt 2
up
info locals
up 2
down
undisplay 1
finish
finish
delete 3
tbreak compare
continue
bt
print left
print *(const long *)a
print (long *)a
print *(long *)a@2
next
print left
print right
print left > right
print left - right
return 1
bt 1
next
until 130
print values
print values[1]
print *values@2
print &values[1]
print *(&values[1] + 1)
set var values[0] = 99
print values
print values[0]++
print values[0]
print --values[0]
print total
print/x total
print/o total
print/t total
print/c 65
print/f total
print/a main
print/z total
x/4dg values
x/2xg &values[0]
x/8xb raw
x/6ub raw
x/s words[0]
x/2s words[0]
x/3cb words[1]
x/wx raw
x/hx raw+1
x/2i $pc
x/fg &pi
info line
info symbol add
info symbol &book.stats
info address book
info frame
info registers rip
p $sp
p $_exitcode
p $foo = 5
p $foo * 2
set $bar = values
p $bar[1]
p $bar == values
p sizeof $bar
output total
printf "%ld %5.2f %s %c\n", total, pi, words[1], 'z'
echo text\n
call evaluate(&book.cells[2][1])
call (void)evaluate(&book.cells[2][1])
call set_number(&book.cells[1][1], 31)
print book.cells[1][1].as.number
print book.stats
watch book.stats.writes
call set_number(&book.cells[1][1], 32)
info watchpoints
delete
tbreak dump
continue
info locals
tbreak 112 if column == 1
continue
print *cell
print row
print column
print cell->as.text
finish
continue
info locals
run
bt
