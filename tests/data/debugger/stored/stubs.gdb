p puts
p printf
p &printf
whatis printf
ptype printf
p errno
info symbol printf
break printf
info line printf
p sizeof(printf)
p (long)strlen("abc")
p strlen
info line enter
p $_
x/i
x
p $__
list 1,3
list enter
list -
