b shop::Cart::check
r
up
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
