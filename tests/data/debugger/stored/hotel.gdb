info line main
list sum
info functions book
info types Flags
ptype hotel::Flags
ptype hotel::Bed
break hotel::Desk::book
break hotel::Full::Full
tbreak main
info breakpoints
run
next
print rooms
next
print rooms
print rooms[0]
print rooms[1].flags
print (hotel::Flags)rooms[1].flags
print/x rooms[1].key
print rooms[1].key.bytes
print/x rooms[1].key.bytes
print rooms[0].bed
print rooms.size()
print argc
print argv[0]
print *argv@argc
print raw
continue
backtrace
info args
print number
print guest
print *guest
print from
print from.year
print/d from.day
print nights
print this
print *this
print rooms_
print rooms_[2]
print stays_
print totals_
print names_
print order_
ptype this
whatis *this
ptype guest
whatis guest->name_
print guest->name_
print guest->name()
print guest->age()
print guest->discount()
next
print room
print *room
print room->price * nights
next
step
info locals
finish
print sum(1, 3)
call sum(2, 4)
continue
print guest
print *guest
set print object on
print *guest
print guest->discount()
whatis *guest
set print object off
info vtbl guest.get()
print dynamic_cast<hotel::Member*>(guest.get())->points_
print ((hotel::Member*)guest.get())->points_
print stays_.size()
print stays_[101]
print names_
print order_
print totals_.size()
print totals_.last()
print totals_.items_
continue
bt
up
info locals
frame 1
print number
print stays_
continue
watch paid
delete 2
info watchpoints
print paid
tbreak 170
continue
print trouble
print text
print ann
print bob
print raw
print *raw
print raw->name_
set print object on
print *raw
print raw
set print object off
print hotel::Guest::count
print &hotel::Guest::count
print desk
print desk.stays_
print desk.rooms_[0].number
print wanted
print wanted[1]
print wanted[1].nights * 2
print sizeof(wanted)/sizeof(wanted[0])
ptype wanted
whatis wanted
ptype desk
ptype hotel::Room
ptype/o hotel::Room
ptype hotel::Guest
whatis hotel::Desk::Stay
ptype hotel::Desk::Stay
ptype hotel::History<double, 4>
whatis desk.totals_
set print pretty on
print rooms[0]
print *ann
set print pretty off
p $_exitcode
p text.length()
p text.c_str()
p text[0]
p text + "x"
p text == "Bob/44"
p -pretty -- rooms[1]
x/s text.c_str()
x/2dw &rooms[0].number
x/gx &rooms[1].key
p &rooms[0]
p *&rooms[0]
p rooms.begin()
p *rooms.begin()
p rooms._M_impl._M_start[1]
p *rooms._M_impl._M_start@2
info symbol hotel::Guest::count
info line hotel::Desk::book
info scope sum
info source
info frame
step
bt
info args
print name
print *this
finish
next
tbreak sum
continue
until
until
until
advance 138
info locals
set var total = 50
finish
print $
next
print numbers
continue
info breakpoints
