watch total
info watchpoints
delete
info watchpoints
break main
run
watch total
rwatch limit
awatch a.id
info breakpoints
continue
continue
continue
continue
continue
continue
continue
continue
info watchpoints
delete 3
delete 4
disable 2
watch local
watch p->id
watch -l p->id
info breakpoints
delete 6
delete 7
delete 8
tbreak add
continue
watch sum
continue
next
next
continue
info watchpoints
continue
continue
continue
info breakpoints
tbreak 41
continue
watch ratio
watch text
continue
continue
info watchpoints
delete 12-13
watch total if total > 12
info breakpoints
continue
ignore 14 1
continue
info breakpoints
delete 14
watch 5
watch 1+2
watch main
watch nosuch
watch
rwatch
awatch -l
watch -l 5
watch -l total+1
watch (
rwatch $rax
watch $rdx
info watchpoints
stepi
continue
continue
delete
watch total+limit
continue
delete
continue
rwatch $rax
