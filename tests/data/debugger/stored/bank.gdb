info functions transfer
info functions bank::Account::
info types Amount
info line bank::transfer
list bank::transfer
list bank::Account::withdraw
break bank::transfer
b bank::Account::withdraw if cents > 5000
tbreak bank::Savings::rate
b main
info breakpoints
run
next
next
p ada
p bob
ptype ada
whatis ada
p &ada
c
bt
info args
p from
p to
p &from
p from.owner_
p from.balance_
p from.balance_.cents
p cents
whatis from
whatis to
set print object on
p from
whatis from
p to.owner_
set print object off
step
bt
p *this
p this->balance_.cents
p owner_
p owner_.size()
p number_
p moves_
p last_
p bank::Account::last_
p balance_.currency
p bank::crown
p (bank::Currency)3
ptype this
finish
next
next
p amount
p amount.cents / 100.0
ptype amount
step
info locals
p amount
p *this
up
info locals
finish
tbreak bank::pick
c
bt
p from
p from.size()
p from[1]
p better
ptype from
whatis from
info locals
finish
next
p highest
p scores
p scores[0]
p &scores[1]
p *scores._M_impl._M_start@3
p who
p *who
p who->owner_
p who->rate()
p ada.rate()
set print pretty on
p *who
p ada
set print pretty off
p directory
p title
p *argv@argc == 0
p argc
next
p line
p line.length()
p line.c_str()
p line[0]
ptype bank::Account
ptype bank::Amount
ptype bank::Currency
ptype bank::Index<std::string, bank::Account*>
whatis directory
p bank::transfer
info symbol bank::transfer
info address title
info vtbl who
catch throw
info breakpoints
disable 1
c
c
bt
up
p cents > balance_.cents
p balance_
info locals
up
info locals
frame function main
p failures
tbreak 116
c
p error
n
p failures
c
info breakpoints
