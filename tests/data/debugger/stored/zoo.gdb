info line zoo::count
list zoo::fail
list zoo::Duck::depth
info functions zoo::fail
info variables visits
info types Bits
break zoo::count
b zoo::Duck::sound
b zoo::Ring<int, 4>::push if value == 33
rbreak ^zoo::fail
tbreak zoo::Animal::move
catch throw
info b
r
bt
info args
p *this
p this->name_
p name_
p to
p legs_
p legs()
p place_
ptype this
whatis this
whatis *this
p zoo::Animal::limit
set print object on
p this
p *this
whatis this
set print object off
finish
c
p value
p *this
p values_
p values_[1]@2
ptype this
up
info locals
p ring
p ring.size()
p ring[1]
whatis ring
ptype ring
c
bt
p animals
p animals.size()
p legs
up
p animals[0]
p *animals[0]
p animals[1]->name()
p animals[1]->legs()
p animals[0]->sound()
p duck
p *duck
p duck->sound()
p duck->depth()
p swimmer
p *swimmer
p swimmer->depth()
set print object on
p swimmer
p *swimmer
set print object off
p dynamic_cast<zoo::Duck *>(swimmer)
p (zoo::Duck *)swimmer == duck
p static_cast<zoo::Animal *>(duck)
p names
p codes
p codes[7]
p chain
p line
p line[1]
p maybe
p *maybe
p never
p triple
p pair
p pair.first
p fixed
p fixed[1]
p fixed.size()
p here
p gap
p here - there
p here < there
p &here
p here.x + here.y
p bits
p bits.real
p/x bits.whole
ptype bits
ptype zoo::Animal
ptype zoo::Duck
ptype zoo::Place
whatis zoo::count
ptype zoo::count
p zoo::detail::visits
p zoo::detail::bump
p zoo::detail::bump(2)
ptype zoo::detail
whatis zoo
p sizeof(zoo::Duck)
p member
info vtbl swimmer
info vtbl duck
info symbol zoo::detail::visits
p $rip
info line
d 1
c
p code
p code > 2 && code < 9
c
bt
up
frame function main
p scale
p wrapped
p factor
p scaled
p names.size()
p chain.size()
p &zoo::Place::y
p reinterpret_cast<long>(duck) == (long)duck
p typeid(*duck).name()
p this
p 'zoo::fail'
p zoo::fail
info source
tbreak 139
c
p error
p error.code
finish
info locals
d
c
