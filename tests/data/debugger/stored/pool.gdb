set pagination off
set print thread-events off
show print thread-events
info threads
thread
thread 1
break note if self->id == stop_at
b collect
info breakpoints
info line work
ptype worker_t
ptype struct nothing
whatis workers
p workers
p lock
p sizeof(pthread_mutex_t)
p WORKERS
p stop_at
p total
r
bt
p *self
p self->history
p round
p mine
p self->id
p self - workers
up
info locals
p argument
p *(worker_t *)argument
p mine
finish
p total
thread
info thread
thread find work
thread name second
p $_thread
p $_gthread
p $_inferior
thread 1
p $_thread
bt 1
frame function main
p mine
p sum
p i
p threads
up
thread 99
thread x
thread apply 1 p $_thread
thread apply 1 p mine
thread apply 99 bt
thread apply
thread apply all p 1
thread apply all -q p 2
taas p 3
thread apply 1 -s p nosuch
frame apply all p $pc != 0
frame apply 1 p 5
frame apply level 0 p $_thread
set scheduler-locking step
show scheduler-locking
set scheduler-locking on
show scheduler-locking
set scheduler-locking replay
show schedule-multiple
set non-stop on
show non-stop
set non-stop off
c
p mine
thread
set var mine = 50
p mine
delete 1
info b
b 26 thread 2
b 26 thread 77
tbreak collect
info b
delete
b collect
disable
info b
enable
c
info threads
p threads[0] != 0
p workers
p *workers@2
p workers[1].history[2]@2
p/x workers[2]
p total
bt
watch sum
c
c
info watchpoints
delete
finish
p sum
p $
next
next
c
info threads
thread
thread apply all bt
p workers
p $_exitcode
p $_thread
