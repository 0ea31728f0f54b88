info macro SQUARE
list factorial
list 100,110
list push,+4
list
list -
info line push
info address main
info symbol main
info scope push
ptype struct task
ptype union word
ptype packet_t
ptype/o struct packet
ptype state_t
ptype work_fn
whatis jobs
whatis &jobs
whatis jobs.head->work
whatis history
ptype levels
ptype on_signal
print sizeof(struct task)
print sizeof(packet_t)
print pattern
print/x pattern
print/c pattern
print/d history
print levels
print jobs
print precise
print verbose
break push
break run_all
tbreak factorial
source queue.words
info breakpoints
run
info args
bt
print name
x/s name
print *name@8
print work
print *work
print whole
print/x whole
print/f whole
print/t whole
print (float)whole
finish
print $.word
print $->word
print/x $$->word
print *$$2
next
next
continue
walk jobs.head
help walk
print $many
print jobs
print *jobs.head
print *jobs.head->next
print jobs.head->next->next->name
print jobs.head->work
print jobs.head->work == count_bits
print jobs.head->word.bytes
print/x jobs.head->word.bytes
print jobs.head->word.half
print/x jobs.head->word.half.high
print jobs.head->packet
print jobs.head->packet.flags
print/x jobs.head->packet.version
print &jobs.head->packet.length
print jobs.tail == &jobs.head->next->next->next
ptype jobs.head->word.half
whatis jobs.head->state
print jobs.head->state
print jobs.head->state + 1
print (state_t)5
print (state_t)3
print READY
print/d DONE
set var jobs.head->state = IDLE
print jobs.head->state
set print union off
print *jobs.head
set print union on
set print pretty on
print jobs.head->packet
print *jobs.head
set print pretty off
watch total
rwatch jobs.count
info watchpoints
continue
continue
bt
info locals
delete 4
delete 5
tbreak grow
continue
print calls
print task->packet
print *task
print task->name
display task->packet.length
display/x by
info display
next
next
undisplay 1
next
finish
next
print history
print history[0]@2
print &history[2]
print &history[3] - &history[0]
print *history@3
print history == &history[0]
x/8dw history
x/4xb pattern
x/2xh pattern
x/2xw pattern
x/s &pattern[4]
x/4c pattern+4
x/2gx &jobs
x/a &jobs.head->work
info symbol jobs.head->work
until 122
delete 2
continue
bt
info frame
up
info locals
down
print n
finish
handle SIGUSR1 nostop noprint pass
handle SIGUSR2 stop print
info signals SIGUSR1
break on_signal
continue
bt 1
print number
finish
continue
continue
info signals SIGUSR2
p $_siginfo.si_signo
bt
signal 0
print jobs.ticks
kill
start
next
print line
info program
next 3
print factorial(4)
call factorial(3)
print grow(jobs.head, 2)
print jobs.head->packet.length
print push(&jobs, "extra", grow, 1)
print *$
print jobs.count
print $_exitcode
print $_
print $nonexistent
set $idx = 0
print levels[$idx++]
print levels[$idx++]
print $idx
set $p = &history[0]
print *$p
print $p[3]
jump 150
info locals
print $_exitcode
save breakpoints /dev/stdout
show args
