info line perform
break perform if self->id == 1
info breakpoints
list take
ptype struct worker
ptype/o struct job
whatis board
ptype board
print crew
print crew[1].name
print errno
run
backtrace
info threads
thread
print *job
print *self
print self->name
print/x job->kind
print job->kind
print (enum job_kind)5
print job->next->label
print *job->next
print finished
print current
info locals
next
next
next
print finished
print *current
up
info locals
print self == &crew[1]
p $_thread
thread find ben
thread find nobody
thread name welder
info threads 3
thread apply 3 print self->id
thread apply 3 bt
print board
print board.left
p board.turn
down
finish
delete
break pass thread 3
break 73 thread 4
info breakpoints
continue
p self->id
p $_
continue
bt
p *self
set scheduler-locking on
show scheduler-locking
next
print board.turn
p errno
p report("gdb", 2.5)
p errno
p $_exitcode
set scheduler-locking off
delete
watch total_hours
continue
p total_hours
p self->name
continue
info watchpoints
delete
tbreak report
continue
thread
bt
p title
p hours
p *title@4
next
next
info locals
p errno
p finished
p crew[0].done + crew[1].done + crew[2].done
p crew[2]
info threads
finish
info registers rip
p $_siginfo.si_signo
kill
info threads
p crew[0].done
