break 108
run
x/8xb raw
x/4xh raw
x/4xw raw
x/2xg raw
x/8db raw
x/8ub raw
x/4cb raw+8
x/c raw+8
x/2tb raw
x/2ow table
x/4dw table
x/3wx &table[1]
x
x/s words[0]
x/3s words[0]
x
x/2f ratios
x/2fw ratios
x/f &wide_real
x/2i $pc
x/i
x/2a &first
x/3uw table
x/2gx $sp
x/xw &limit
p $_
p $__
x/-2xw table+1
x/0x raw
output total_calls
output/x 255
output table
printf "%d %i %u %x %o %c\n", 1, -2, 3, 255, 8, 'A'
printf "%5d|%-5d|%05d\n", 42, 42, 42
printf "%s and %s\n", words[0], words[1]
printf "%s\n", text
printf "%10s|%-10s|\n", words[0], words[1]
printf "%f %g %e\n", 1.5, 2.5, 1000.0
printf "%lu %ld %lx\n", 5, -5, 255
printf "%llu\n", 1234567890123
printf "%%\n"
printf "%p\n", 0
printf "%p\n", 4096
printf "%c%c\n", 72, 105
printf "no args\n"
printf "%d\n"
printf "%d\n", 1, 2
printf "tab\there\\ \"q\"\a\n"
printf "%5.2f\n", ratios[1]
printf "%Lf\n", wide_real
printf "%hhd %hd\n", 300, 70000
printf
printf 5
echo hello\n
echo   two  words \n
echo text with\ttab\n
echo
info line 108
info line fill
info line ledger.c:50
info line
info line *$pc
info symbol main
info symbol $pc
info symbol table
info symbol &table[1]
info symbol 0
info address main
info address table
info address i
info address total_calls
info address nosuch
info scope add
info scope main
info scope nosuch
info scope sum_to
info display
display i
display/x sum
display/i $pc
info display
next
undisplay 2
next
disable display 1
next
info display
delete display
info display
info locals
info args
up
info locals
down
frame
frame 1
frame function fill
frame level 1
info frame
up
down 5
