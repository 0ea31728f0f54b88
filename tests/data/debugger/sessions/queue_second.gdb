info macro CAPACITY
info macro SQUARE
info macro LARGER
info macro NOSUCH
macro expand SQUARE(3)
macro exp LIMIT
macro expand-once LIMIT
macro expand LARGER(CAPACITY, 4) + x
p CAPACITY
p LIMIT
p SQUARE(4) + 1
p GREETING
p sizeof(GREETING)
p MASK & 0xff
p LETTER
p LARGER(3, CAPACITY)
whatis MASK
show language
set language c
show language
set language c++
show language
p true
set language pascal
set language asm
p 1 == 1
set language auto
show language
set language nosuch
tbreak push
run
p IS_FULL(q)
info macro IS_FULL
macro list
macro define LOCAL(x) (x + 1)
macro list
p LOCAL(5)
macro undef LOCAL
p LOCAL(5)
watch q->count
info watchpoints
c
c
delete
rwatch pending.count
awatch pending.tail
i watch
c
c
d
watch -l q->head
delete
tbreak each
c
info args
p visit
p *visit
p data
p *(double *)data
p q == &pending
p q->head->next->name
p *q->head->next
p q->log
p/x q->log
p q->log[0]@3
p $.x
p $
p $$2
s
s
info locals
stepi
nexti
si 2
x/i $pc
display/i $pc
ni
undisplay 1
info display
until 100
advance 122
info line
info line factorial
frame
info frame
thread
info threads
thread apply all bt
info inferiors
thread name worker
info threads
info sharedlibrary
info signals SIGINT
info signal SIGSEGV
handle SIGUSR1 stop print
i handle SIGUSR1
set var i = 3
p i
p i++
p i
p ++i
set variable total = 2.5
p total
p total * 2
print/x 255
print 'z'
print "text"
p 10 % 4
p 1 ? 2 : 3
p 'queue.c'::primes
p &pending
p pending.log
p main::total
p push::q
p factorial(4)
call factorial(3)
call (void)0
p first_link
p (int)strlen(banner)
print $_strlen(banner)
p -pretty -- pending
p -elements 3 -- primes
p -array-indexes on -- grid
print -object off -array on -- grid
show print pretty
show print elements
set print elements 4
p primes
p banner
set print elements 200
show listsize
set listsize 4
list 50
set listsize 10
show args
set args one two
show args
show environment QUEUE_MODE
set environment QUEUE_MODE=crash
show env QUEUE_MODE
set disassembly-flavor intel
show disassembly-flavor
x/4i factorial
disassemble factorial
set disassembly-flavor att
x/4i factorial
disas /r last_link
set scheduler-locking on
show scheduler-locking
set scheduler-locking off
info types job
info types state
info variables prime
info functions _link
info scope push
info scope each
b middle_link
c
bt
finish
kill
info b
d
run
bt
p $_siginfo.si_signo
info registers rip
x/i $pc
list
p sum
p $_exitcode
c
info program
