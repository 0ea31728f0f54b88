break 13
run
skip
skip function inner
step
step
step
step
step
step
info skip
skip delete
step
step
next
next
run
skip -gfi *skip.c -fu outer
skip -fi skip.c -rfu ^inn
info skip
step
step
step
step
step
step
skip disable 2
info skip 2
info skip 7
skip delete 9
skip -fu
skip -fi a -gfi b
skip -xx y
skip enable
step
step
rbreak ^inn
info breakpoints
rbreak skip.c:mid
tbreak outer if a == 3
disable 2
dprintf inner,"x is %d\n", x
dprintf 9
info breakpoints
continue
continue
continue
info line for inner
info line inner
info address t
info address inner
info scope inner
info scope skip.c:15
compare-sections .text
compare-sections nosuch
pipe info line inner | wc -l
pipe -d ! p 5 ! cat
| p 6 | cat
pipe
pipe p 1
p $_exitcode
kill
frame apply all p 1
thread apply all p 1
p $_thread
