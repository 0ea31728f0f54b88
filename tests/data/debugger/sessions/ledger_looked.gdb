list add
list
list 60,64
list -
list square,
list ,50
break fill if count > 40
tbreak ledger.c:124
info breakpoints
run
bt
info frame
p numbers
p text
p sizeof(numbers)/sizeof(numbers[0])
p &numbers
p *numbers@3
p/x *numbers@3
p numbers[1]@2
p first
p *first
p *first->next->next
p first->name
p &first->name
p *first->name@4
p/c first->name
p/x first->name
p/s first->name
p/d 'a'
p/c 65
p/t 10
p/o 8
p/x -1
p/u (char)-1
p/z 5
p/f 3
p/f 1078530011
p/a main
p/a 0x401136
p first->amount
p first->range
p first->flags
p/x first->flags
p/t first->flags
p/d first->flags
p sizeof(struct entry)
p sizeof(union amount)
ptype struct entry
ptype union amount
ptype struct flags
ptype/o struct entry
ptype/o struct flags
ptype/o union amount
ptype/ox struct entry
ptype first
ptype first->range
ptype/o first
ptype int
ptype unsigned long
ptype main
ptype compare_fn
ptype table
ptype words
ptype/o int
whatis first
whatis *first
whatis first->name
whatis table
whatis table[0]
whatis &table[0]
whatis main
whatis struct entry
whatis entry_t
whatis compare_fn
whatis 1+2.0
whatis 'a'
whatis sizeof(int)
whatis (char)1
whatis first->flags.wide
whatis ratios
whatis 1 == 1
p wide_real
p ready
p marks
p (enum mark)3
p (enum mark)0
p (enum mark)8
p (enum kind)5
p (enum kind)9
p BANK
p BANK + 1
p/d BANK
p chosen
p *chosen
p compare_int
p &compare_int
p square
p $_
p $__
p $rip
p $pc
p $sp
p $nonexistent
p $_exitcode
p table
p table[1]
p *table@2
p *table[1]@2
p words
p words[0]
p *words@2
p ratios
p raw
p -elements 4 -- raw
p/x raw
p/d raw
p/c raw
