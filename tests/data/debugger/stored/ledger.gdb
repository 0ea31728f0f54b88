list withdraw
info line withdraw
break withdraw
info breakpoints
print accounts
print accounts[1].owner
print &accounts[2]
ptype struct entry
whatis accounts
print sizeof(struct account)
print/x big
x/6xb buffer
print buffer
run
backtrace
info args
print *from
print from->owner
next
next
print from->balance
step
bt
info locals
next
next
print *made
finish
print $
print *$
print $.when
print $$2
up
info locals
print *to
frame
continue
print amount
condition 1 amount == 10
info breakpoints
finish
continue
print *from->first
print from->first->note
print from->first->when.year
ptype from->first->when
delete 1
break by_balance
continue
print left
print *left
next
print left->balance
print *right
clear by_balance
break gcd if b == 0
continue
bt
frame 2
info frame
print a
print a % b
finish
delete
print gcd(100, 75)
tbreak interest
continue
print *all@count
print all[0].rate
watch sum
continue
continue
info watchpoints
print i
print part
delete
tbreak audit
continue
info threads
bt
print *total
thread 1
bt 1
thread 2
next
next
print accounts[0]
set var errors = 40
print errors
print withdraw(&accounts[0], 5)
print accounts[0].balance
call record(&accounts[1], DEPOSIT, 77, "gift")
print accounts[1].first->note
print *accounts[1].first
print accounts[1].entries
print history
print history[2]@3
print/x history
output history[3]
printf "%s has %ld\n", accounts[0].owner, accounts[0].balance
info symbol gcd
info address errors
print &history[4]
print *&history[4]
whatis &history
print (char)97
print 'a' + 1
print "hi"
print TRANSFER
print (enum kind)1
print/d TRANSFER
continue
print $_exitcode
info registers
print errors
