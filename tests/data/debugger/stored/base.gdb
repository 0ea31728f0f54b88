p v_int
p v_char
p v_signed_char
p/x v_short
p v_unsigned_char
p/c v_int
p/x v_signed_char
p/o v_unsigned_short
p/t v_unsigned_char
p/d v_unsigned_int
p/u v_int
p/f v_int
p/f v_float
p/x v_double
p/a v_pointer
p/s v_text
p/s v_bytes
p/c v_bytes
p/x v_bytes
p/d v_text
p/z v_short
p/r v_int
p/x -1
p/c 97
p/f 1
p/i v_int
p/2x v_int
p $_siginfo
p *v_pointer
p v_string
p v_text
p v_repeat
p v_ints
p v_matrix
p &v_matrix[1]
p v_matrix[1]
p *v_matrix
p **v_matrix
p v_matrix[0][1]
p v_void
p v_cv
whatis v_cv
whatis v_matrix
whatis &v_matrix
whatis v_matrix[0]
ptype v_color
ptype v_fields
ptype/o struct inner
whatis struct fields
ptype binary_t
whatis binary_t
ptype plus
whatis times
ptype make
p plus
p *plus
p &plus
p times
p v_flags
p (enum flags)3
p (enum flags)8
p (enum flags)0
p (color_t)4
p/d v_color
p v_color == blue
p blue
p F_READ | F_WRITE
p sizeof(int)
p sizeof(struct fields)
p (char)65
p (short)70000
p (unsigned char)-1
p (long)v_float
p v_float * 2
p v_double
p 1.5e10
p 1.5f
p 10 / 3
p 10 / 0
p 10 % 0
p 10.0 / 0
p 1 == 2
p 1 || 0
p 5 & 6 ^ 1
p -5 >> 1
p 1 ? 10 : 20
p (1, 2)
p 'a' == 97
p '\n'
p '\0'
p '\101'
p "x" "y"
p sizeof("hello")
p &"hello"
p v_int = 5
p v_int += 3
p v_int++
p --v_int
p v_text[0] = 'J'
p v_char = 66
p v_nosuch
p v_fields.nosuch
p v_fields->a
p v_int.a
p *v_int
p v_ints[1
p v_int +
p )
p
p $1
p $nonexist
p $_
ptype int
ptype unsigned long
ptype unsigned
ptype struct
ptype struct nosuch
whatis 1 + 2
whatis 1.0f
whatis 'a'
whatis 1 == 1
whatis 5ul
whatis (char)1
whatis v_int + v_long
whatis v_float + 1
whatis &v_int
whatis *v_pointer
whatis v_fields.u
output v_int
output/x 255
printf "%d %s %c %5.2f %lu %#x\n", v_int, v_string, v_char, v_double, v_unsigned_long, 255
printf "%%\n"
printf
printf %d
printf "%d
printf "%d%d\n", 1
printf "%s\n", v_text
printf "%5d|%-5d|%05d\n", 1, 2, 3
echo text\n
echo \ttab\n
b loop
run
finish
Run
up
watch v_fields.x
tbreak recurse
c
p v_fields
p/x v_fields
p v_fields_pointer->u
p *v_fields_pointer->link
p v_fields_pointer->grid[1]
p v_fields.grid
p v_fields.op
p v_fields.op(6, 7)
p *v_fields.op
p v_fields.ld
p v_fields.c
p v_fields.b * 2
p &v_fields.inner
p &v_fields.grid[1][1]
p v_fields.name
p &v_fields.name
p *&v_fields.name
p v_fields.u
c
x/s v_string
x/2s v_text
x/4ub v_bytes
x/2dh &v_short
x/f &v_float
x/fg &v_double
x/c &v_char
x/3d v_ints
x/a &v_pointer
x/2o v_ints
x/2t v_bytes
x/i main
x &v_int
x/0x v_ints
x/-2x &v_ints[2]
x nosuch
display v_int
display/i $pc
display/x v_fields.a
info display
disable display 1
step
undisplay 2
undisplay 44
next
delete display 3
return
bt
frame 1
call times(3, 4)
call nothing()
call plus(1)
call plus(1, 2, 3)
call halve(3)
call make(1, 2)
call pick
p make(1, 2).l
p recurse(2)
p $_exitcode
p $_strlen("four")
p $_streq("a", "a")
p $_regex("abc", "a.c")
info line 80
info source
info symbol v_int
info symbol 0
info address v_int
info address plus
info address nosuch
info scope loop
info scope nosuch
