set print pretty off
info functions area
info functions shop::Cart
info types Money
info variables wallet
list shop::Cart::add
list shop::area
b shop::area
b shop::Cart::check
b Item::price
break shop::Item::Item
tbreak shop.cpp:109
info breakpoints
run
bt
p name
p *this
p this
ptype this
whatis this
p price
p kind
p shop::Kind::tool
p (int)shop::Kind::toy
finish
delete 4
c
info locals
c
bt
up
info locals
p cart
p cart.items_
p cart.counts_
p cart.items_.size()
p numbers
p numbers[2]
p numbers.size()
p greeting
p alias
p &alias
whatis alias
ptype greeting
p first
p *first
whatis first
whatis *first
set print object on
p first
p *first
whatis *first
ptype first
set print object off
p first->name_
p first->price()
p first->label()
p dynamic_cast<shop::Discounted*>(first)
p *(shop::Discounted*)first
p ((shop::Discounted*)first)->percent_
p sizes
p sizes.sum()
ptype sizes
whatis sizes
ptype shop::Pair<int>
ptype shop::Money
p wallet
p wallet.cents
p wallet == paid
p shop::Item::made
p &shop::Item::made
ptype shop::Item
ptype shop::Kind
ptype Cart
whatis Cart
p shop::area(7)
p shop::area(7, 8)
p shop::area(2.0)
p shop::area
ptype shop::area
info line shop::Cart::total
info symbol shop::wallet
info address wallet
info vtbl first
p *first->name_._M_dataplus._M_p@3
set print vtbl on
p *first
set print vtbl off
set print pretty on
p *first
p sizes
p cart.counts_
set print static-members off
p *first
set print static-members on
set print pretty off
p $_siginfo.si_signo
d
catch throw
catch catch
info b
c
bt
c
bt 1
up
info locals
frame function main
p twice
p best
p cart.items_[0]
p *cart.items_[0]
p cart.items_[1]->price_
p cart.items_[9]
p nosuch
p cart.nosuch
p shop::nosuch
p cart
p/x numbers
p sizeof(cart)
p sizeof(shop::Item)
p typeid(int)
p true && false
p 3 > 2
p greeting + "x"
p greeting == "welcome"
p greeting.c_str()
p greeting.length()
p *greeting._M_dataplus._M_p@7
info source
info catch
d
c
p cart
