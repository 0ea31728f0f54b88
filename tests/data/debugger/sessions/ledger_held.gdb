info functions sum
info types kind
break add if value > 50
run
where
info args
ptype made
p made
next
next
p *made
p made->name
set var made->value = 3.25
finish
p $
p *$
p $$2
info display
tbreak fill
continue
info frame
p numbers
display sum
display i
watch sum
c
c
info watchpoints
delete 3
undisplay 1
until 117
n
info locals
p &sum
p *&sum
x/dw &sum
ptype numbers
whatis &numbers
ptype &table
whatis table[0]
ptype compare_fn
p compare_int
p chosen
p *chosen
p chosen(&table[0][0], &table[1][0])
info symbol chosen
info line add
info address compare_int
list average
list 50,55
list add,+4
list ledger.c:100,105
info source
p sizeof(struct entry)
p sizeof(entry_t) * 2
p (long)&((entry_t*)0)->value
ptype struct flags
ptype union amount
ptype enum mark
p marks
p (enum mark)3
p (enum mark)9
p/d marks
p SEEN|PAID
p CASH
p/x raw
p/d raw
p/c raw
p/o raw[1]
p/t raw[2]
x/4xb raw
x/2xh raw
x/16xb raw
x/3c raw+8
x/s raw+8
p words
p *words@3
p words[1][2]
p *words[0]@3
p ratios
p ratios[1] * 2
p wide_real
p wide_real * 2
p ready
p !ready
p first ? first->kind : 0
p first == 0
b 999
b nosuchfn
b ledger.c:120
info b
disable 1
enable once 1
info b
run
bt
up
down
info registers rax
p $eax
p $ax
p $al
p $cs
x/3i $pc
x/i main
disassemble sum_to,+12
stepi
x/i $pc
nexti
call sum_to(3)
p sum_to(4) + 1
print average(first)
kill
info locals
starti
start
advance average
info locals
finish
catch syscall write
c
bt 1
delete
c
p $_exitcode
run crash
bt
p nowhere
p *nowhere
x/i $pc
p $_siginfo.si_signo
p $_siginfo._sifields._sigfault.si_addr
info signals SIGSEGV
signal 0
info threads
c
show args
