set pagination off
set print pretty off
list main
list graph::checksum
info functions checksum
info line graph::checksum
ptype graph::Edge
whatis graph::Weight
break graph::Depth::run
break graph::Shortest::run
break fib if n == 3
info breakpoints
run
bt
info args
print start
print graph.size()
print graph.names_
print graph.names_[1]
print graph.edges_
print graph.edges_[0]
print graph.numbers_
print graph.joins_
print graph.frozen_
print graph.name(2)
print this
print *this
print steps_
ptype this
next
next
next
next
next
print open
print seen
print order
step
finish
next
print node
print order.size()
print open.size()
tbreak 78
continue
print node
print order
print/x order
print order[0]@1
info locals
up
info locals
print searches
print searches[0]
print *searches[0]
print searches.size()
print i
print sums
down
finish
next
continue
print *this
print distance_
print graph::infinite
next
next
print distance_
print distance_.size()
watch distance_[3]
continue
continue
info watchpoints
delete 5
bt
print far
print node
print edge
print edge.weight
print edge.label
print next
print next + 1
print next > 5
print distance_[edge.to]
print open
set var next = 6.5
print next
print -next
print next * 2
catch throw
catch catch
info breakpoints
disable 2
continue
print $
bt
up
print value
finish
continue
bt
frame 1
print node
print distance_
print distance_[2]
info frame
up
print last
print shortest
print *shortest
print shortest->distance(1)
print shortest->steps()
print shortest->steps_
set print object on
print searches[1]
print *searches[1]
print searches[1].get()
set print object off
info vtbl shortest
continue
up
print status
next
next
print range
print range.what()
print status
delete
break 166
continue
print value
print status
print sums
print sums[1]
print sums.size()
print &sums
print *&sums
ptype sums
whatis sums
whatis searches
whatis roads
ptype roads
ptype graph::Search
ptype graph::Shortest
whatis shortest
whatis *shortest
print sizeof(roads)
print fib(5)
print fib
print &fib
print graph::checksum
info symbol fib
info address fib
x/2i fib
x/s status.c_str()
x/2gd &sums
output value
printf "%d %s\n", value, status.c_str()
info source
info line 166
info sharedlibrary nothing
kill
