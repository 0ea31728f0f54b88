b zoo::count
r
d
catch throw
up
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
