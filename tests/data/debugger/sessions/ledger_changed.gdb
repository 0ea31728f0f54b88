tbreak main
run
tbreak add
info breakpoints
continue
finish
watch total_calls
continue
continue
info watchpoints
delete 3
until 124
advance average
info locals
set var count = 5
p count
set var all = 2.5
p all
p count = 7
p count++
p ++count
p count, all
p all * 2
p 7/2
p 7/2.0
p 7 % 3
p -7 / 2
p 1 << 4
p 5 > 3 && 2 < 1
p !5
p ~5
p 1 ? 2 : 3
p 10 == 10.0
p "abc"
p sizeof("abc")
p "a" "b"
p 'a' + 1
p '\n'
p '\101'
p 0x10
p 010
p 1.5e3
p 1.0f
p 10L
p 5u
p 5/0
p 1.0/0
p -5 % 3
p (char)97
p (short)70000
p (unsigned char)300
p (float)1/3
p 1.0/3
p (long)first
p (char*)0
p *(int*)table@3
p {int}table
p {int}&table[1][1]
p &*first
p &first->kind
p *&first->kind
p first->kind
p first == 0
p !first
p first && first->next
p first->next - first
p &table[1] - &table[0]
p $foo = 5
p $foo * 2
set $bar = first->next
p $bar->name
p *$bar
p $bar->value + 1
set var first->kind = CASH
p first->kind
set var first->flags.level = 2
p first->flags
set var first->flags.sign = -1
p first->flags
set var first->amount.part = 1.5
p first->amount
set var first->range.high = 'z'
p first->range
set var table[1][2] = 100
p table[1]
set var first->name[0] = 'X'
p first->name
set var $rax = 77
p $rax
p $eax
p $al
p $xmm0
p/x $eflags
p $eflags
set var ratios[0] = 3
p ratios[0]
print total_calls
set total_calls = 11
print total_calls
call square(5)
call sum_to(4)
p square(3) + 1
call compare_int(&table[0][0], &table[0][1])
p $_strlen(words[0])
p $_streq(words[0], "one")
p $_regex(words[0], "o.*")
p $_memeq(words[0], words[0], 2)
p $_gdb_setting("print elements")
p $_as_string(marks)
p $_isvoid($nosuch)
p $_isvoid(1)
p $_thread
p $_inferior
p $bpnum
p $1
p $$
p $$3
show values 3
