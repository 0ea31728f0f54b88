break main
run
next
next
next
next
p circle
p *shape
p shape
p &circle
p circle.center
p circle.center.x + 1
p circle.kind
p geo::total
p geo::Shape::count
p circle.id_
whatis circle
whatis shape
whatis letter
ptype geo::Kind
p geo::Kind::Square
p (geo::Kind)4
break apply
continue
bt
info args
p shape
p out
p &shape
p shape.id_
up
p got
down
break geo::Circle::area
continue
bt
p this
p *this
p radius
p center
p this->kind
finish
delete
break c.cpp:40
continue
p big
p ok
p $_exitcode
tbreak geo::biggest<int>
list geo::Circle::area
p sizeof(geo::Circle)
continue
