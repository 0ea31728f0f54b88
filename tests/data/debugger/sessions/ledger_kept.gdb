set pagination off
break add
commands
silent
printf "adding %s of kind %d, value %g\n", name, kind, value
continue
end
tbreak average
run
info breakpoints
define plist
  set var $n = $arg0
  while $n
    printf "%-6s %8.2f %p\n", $n->name, $n->value, $n->next != 0
    set var $n = $n->next
  end
end
document plist
Print a list of entries.
end
help plist
plist first
p *first->next
p/x first->flags
ptype/o struct entry
whatis first->range
p $_siginfo.si_signo
info symbol add
info address first
info line average
p table[1][2]@2
p/t raw[0]
x/4xb raw
x/2s words[1]
x/3dw table
p words
p ratios
output/x total_calls
display all
display/x count
next
next
info display
undisplay 1
next
p sizeof(entry_t) * 3
ptype chosen
whatis &table
info scope fill
p marks
p (enum mark)7
p $_exitcode
up
info locals
print &first->next->value
watch count
continue
continue
delete
finish
p $
p $$2
