break leaf
run
info functions ^sum
info functions leaf
info variables ^a$
info variables calls
info types ^s$
find &a, +sizeof(a), 1
find /w &calls, +8, 0
find /b &a, +16, 1, 0
print $_
print $numfound
printf "%d %s %c %5.2f %lx %%\n", n, "abc", 65, 1.5, 255
printf "%5d|%-5d|%05d|%x\n", -3, 4, 5, -1
return 77
next
print x
jump 15
delete
tbreak leaf if n == 350
continue
up
print x
