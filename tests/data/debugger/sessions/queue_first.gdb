list
list 60,65
l push
l
l -
list queue.c:30
list factorial,
list ,40
info source
info line push
info line 63
info address push
info symbol push
break main
b push
b 84 if job->id == 2
tbreak factorial
info break
r
info source
info locals
info args
p argc
p argv[0]
n
next
next 2
p where
whatis where
ptype where
step
s
bt
info frame
up
info locals
down
p *q
p q->count
p/x *q
ptype q
whatis *q
p name
p *name@4
x/s name
p cost
p/f cost
finish
c
info breakpoints
bt
p *job
p job->name
p job->state
p/d job->state
p job->state == WAITING
p (int)DONE
p sizeof(*job)
p &job->cost
p &((job_t *)0)->cost
whatis job->state
ptype state_t
ptype job_t
ptype struct queue
ptype visit_t
ptype push
whatis push
p push
p *push
p &push
x/2i $pc
display job->id
display/x job->state
display/s job->name
info display
n
undisplay 2
n
d 1
delete 2
condition 3
info b
c
p n
p $rip
info registers rip
i r rsp
p $sp
x/4xw $sp
bt
b
info b
c
c
bt
bt 2
bt -1
bt full 1
where 1
frame 2
p n
f
up 2
down
frame 0
delete
finish
until
advance 127
p product
p i
p sum
p sum = 40
p sum + product
set var sum = 7
print sum
whatis sum + product
ptype sum + 1.5
p primes
p primes[2]@3
p *primes@5
p/x primes
p &primes
p &primes[3]
p *&primes[3]
p primes + 1
p *(primes + 1)
p sizeof primes
p sizeof(primes)/sizeof(primes[0])
p grid
p grid[1]
p grid[1][2]
p &grid[1]
set print pretty on
p pending
p *pending.head
set print pretty off
set print array on
p grid
p primes
set print array off
set print array-indexes on
p primes
set print array-indexes off
p colours
p colours[1]
p *colours@2
p banner
p &banner
p banner[0]
p/c primes
p/x banner
x/s banner
x/9cb banner
x/8xb banner
p factors
p big
p/x big
p/t big
p/o small
p/x small
p/d big
p/u small
p/z small
p/c 65
p/a main
p/a $pc
p/s colours[0]
p/f 1
p/x -1
p small
p -small
p big > 5
output sum
output/x sum
echo done\n
printf "%d jobs of %s\n", pending.count, banner
x/10dw primes
x/5uh &small
x/2xg &big
x/gx &big
x/3fw factors
x/fg &total
x/a $sp
x/3s colours[0]
p $_
p $__
p $_exitcode
info program
handle SIGUSR1 nostop print pass
info signals SIGUSR1
catch signal SIGUSR1
info b
c
p $_siginfo.si_signo
delete
c
p $_exitcode
info program
bt
info locals
p primes
p pending.count
info frame
x/i $pc
next
