break market::Book::add
info breakpoints
run
bt
info args
p self
p *self
p order
p self.side
p self.owner
p *self.owner
p self.best
ptype order
whatis order
ptype Order
ptype market::Side
whatis self
ptype self
finish
continue
p order
info locals
next
next
next
p key
p self.totals
p self.orders
p self.best
continue
p order
p self.orders
p self.orders.len
up
info locals
p book
p owner
down
delete
break market::worth
continue
bt
info args
p items
p items.length
p *items.data_ptr
next
next
next
p item
p sum
p sum * 2.0
finish
tbreak market::length
continue
p list
p *list
finish
break market::checked
continue
p amount
p amount as u8
p LIMIT
p market::LIMIT
p LIMIT + 1
finish
p $
continue
finish
delete
tbreak 135
continue
info locals
p tuple
p tuple.0
p tuple.3
p fees
p fees[1]
p slice
p good
p bad
p scale
p list
p count as f64
p 1 + 2 * 3
p 7 / 2
p 7.0 / 2.0
p !true
p -5
p 'a'
p b'a'
p "abc"
p sizeof(u64)
p [1, 2, 3]
p &fees
p $rip
ptype tuple
ptype good
whatis slice
whatis count
set var count = 99
p count
info line worth
info symbol market::worth
info functions market::
continue
p $_exitcode
