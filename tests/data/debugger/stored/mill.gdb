break grind_one
info breakpoints
ptype mill::Sack
whatis hopper
ptype mill::Grain
list grind_one
run
bt 1
info threads 2
thread
p number
p worker
p *stone
p sack
p sack.weight
p sack.marks
p sack.marks[1]
p sack.grain
p (mill::Grain)2
p mill::OATS
p/x sack.serial
set print object on
p *stone
p stone
whatis *stone
set print object off
ptype stone
info args
info locals
step
bt 2
info frame 1
p turns
p this
p *this
finish
next
p got
p mill::mine
next
p flour
p flour[0]@2
p &flour[1]
up
info locals
p sack
p *sack
p sack.has_value()
p shift
p turn == number
p stone
p stone.get()
p hopper
p hopper.waiting()
p hopper.total()
p mill::ground
p mill::open_
thread find coarse
thread find fine
thread name miller
thread find mill
thread apply 2 -q p number
thread apply 2 3 -q p $_thread
continue
thread
p sack.serial
p *sack.weight
p stone->turns
p stone->loss
p *(mill::Fine *)stone
p ((mill::Fine *)stone)->loss
p dynamic_cast<mill::Fine *>(stone)->loss
delete
watch mill::ground
watch flour[1] thread 3
info watchpoints
continue
continue
bt 1
p mill::ground.load()
p $_siginfo.si_code
info breakpoints
delete
set scheduler-locking step
next
next
show scheduler-locking
set scheduler-locking replay
tbreak 124
continue
p all
p all.size()
p first
p flour
p flour[0] + flour[1] > 5
info threads
p $_gthread
thread 9
thread apply all -q p 1
info symbol grind_one
info address hopper
info line grind_one
p sizeof(mill::Sack)
p $_siginfo.si_signo
detach
info threads
