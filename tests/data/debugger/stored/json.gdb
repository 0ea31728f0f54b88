info line json::sum
list json::sum
list json::Parser::peek
info functions Parser::
info types Kind
info variables made
info scope json::sum
break json::Parser::parse
tbreak json::Parser::word
break json::Parser::item if depth > 3
info breakpoints
run
bt
print text_
print *this
print this
print at_
print made
print json::Parser::made
print limits_
print limits_.slack
print/x limits_.depth
ptype limits_
whatis limits_
continue
info frame
print text_[at_]
print text_.size()
print text_.substr(at_)
print &text_
x/12cb text_._M_dataplus._M_p
x/s text_.c_str()
finish
next
up
info locals
print key
print next
down
bt -2
ptype Value
ptype json::Kind
print json::Kind::text
print (json::Kind)5
print/d json::Kind::array
print (int)json::Kind::object
print sizeof(json::Value)
disable 1
tbreak json::sum
continue
print value
print value.kind()
print value.number()
print value.object()
print value.object().size()
print value.data_
whatis value
whatis value.data_
ptype total
next
next
next
info locals
print total
next
next
step
bt
finish
print $
print $.data_
tbreak 158
continue
next
next
print key
print each
print each.array()
print each.array().size()
print each.array()[1]
print total
set var total = 100
next
print total
frame function main
info locals
print root
print totals
print totals[0]@2
print samples
print *samples@2
print samples[2]
x/s samples[0]
print i
print $_
print $__
catch throw json::Error
catch catch
continue
print depth
bt
info breakpoints
continue
bt
up
print depth
frame 1
info locals
continue
frame function main
next
print error
print error.what()
print error.where()
print error.where_
whatis error
ptype error
info vtbl error
delete
tbreak json::Parser::object
continue
advance json::Parser::word
print *this
watch at_
continue
continue
info watchpoints
delete
until
finish
display failures
display/i $pc
info display
undisplay 2
next
info symbol json::sum
info address json::sum
info source
continue
print $_exitcode
info locals
print json::Parser::made
