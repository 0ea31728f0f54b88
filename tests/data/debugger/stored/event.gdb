break sim::Simulator::run
break sim::Burst::run
info breakpoints
ptype sim::Event
ptype sim::Stats
print sim::Simulator::limit
print sim::High
run
backtrace
print *this
print this->now_
print queue_.size()
print known_
continue
bt
print load
print size_
print at_
print name_
print this->name_.size()
info locals
next
next
print after
until
finish
print stats_
print event
print *event
print event->name()
print event->at() + 1
print stats_.loads
delete 2
catch throw
continue
bt -1
info breakpoints
delete
tbreak 141
continue
print error.what()
next
next
print failure
tbreak join
continue
print words
print words[1]
print words.size()
print by
print all
next
next
info args
finish
next
print joined
print joined.length()
print ring
print ring.data[2]
print ring.sum()
ptype ring
tbreak sim::classify
continue
print level
print/d level
print level == sim::Mid
finish
print ages
print table
print table[0]
print table[0][1]
print unique
print add
print empty
print empty.empty()
print simulator
print simulator.stats_.mean
print simulator.stats().runs
set print pretty on
print simulator.stats_
set print pretty off
print sizeof(sim::Burst)
whatis ages
whatis words[0]
ptype sim::Level
print (sim::Level)5
print sim::classify(sim::High)
info symbol sim::classify
info line sim::classify
print &ring.used
print *&ring.used
tbreak 165
continue
print done
print text
x/s text
print worker
continue
info locals
