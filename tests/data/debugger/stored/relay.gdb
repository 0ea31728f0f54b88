info line hand_over
break hand_over if runner.id_ == 1
info breakpoints
ptype relay::Leg
ptype relay::Baton
ptype relay::Runner
ptype relay::Sprinter
whatis relay::distance
print relay::distance
print relay::Runner::count
print &relay::Runner::count
run
bt
info threads
p runner
p baton
p &baton
p baton.colour
p baton.touched
p leg
p (int)leg
p Leg::Middle
p relay::Leg::Last
p track
p track.lanes_
ptype track
whatis track
whatis baton.touched
ptype relay::Track<int>*
info args
info locals
next
p time
p runner.pace(leg)
p runner.name()
set print object on
p runner
p *&runner
whatis &runner
set print object off
next
p baton.touched
p baton.touched.load()
p relay::distance
p relay::distance + 1
next
next
p relay::laps
up
p *baton
p *runner
p runner->name_
p lock
p turn
p turn_lock
info locals
thread
p $_thread
thread apply all -q p $_thread
down
break relay::Track<int>::note
break Track<int>::sum
info breakpoints
delete 1
continue
bt
p who
p value
p *this
p this->results_
p results_
p notes_
p this
p *this.results_
finish
watch relay::distance
continue
p relay::finished
delete
tbreak 119
continue
p twice
p threads
p runners
p *runners[0]
p runners[1]->name_
p runners[1].get()
p track.results_["olga"]
p track.notes()
p baton
p twice(4)
call track.sum("piet")
info threads
info symbol main
p sizeof(relay::Baton)
p relay::Runner::pace
p &relay::Runner::pace
continue
p $_exitcode
