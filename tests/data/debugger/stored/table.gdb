set listsize 6
list main
list 20,24
list count_words,
list ,50
list hash
list table.c:60
info line determinant
info source
info functions find
info variables words
info types entry
info scope find
break find if create == 0
tbreak count_words
b by_count
b 100
info b
ignore 3 2
start one "two three"
info args
p argv[1]
p argv[2]
p *argv@argc
p argc
show args
set args
run
bt
info args
p text
p *in
p in->buckets
p/x in->used
p from
p *from@7
p from[4]
ptype in
whatis in
whatis *in
whatis in->buckets[0]
next
next 3
info locals
p length
step
s 2
watch words.used
c
c
bt
info watchpoints
p *$
p words.used
p words
p words.load
p words.buckets[4]
p *words.buckets[4]
p words.buckets[4]->word
p &words.buckets[2]
p (long)&words.buckets[2] - (long)&words
p sizeof(words) / sizeof(words.buckets[0])
p searches
set var searches = 100
p searches
up
info frame
finish
delete 5
delete 99
c
bt 1
p left
p *(entry_t **)left
p **(entry_t **)left
p (*(entry_t **)left)->word
info symbol by_count
p by_count
p order
up 3
frame function report
info locals
p found
p all[0]
p *all[0]
p *all[0]@1
p all[0]->word
p all[0]->count + all[1]->count
p order
p *order
p all
down
disable 3
c
info locals
p matrix
p matrix[1]
p rows
p *rows
p rows[1][2]
p *rows@2
p &matrix[1][1]
p *matrix[1]@2
p/x matrix
p sum
p determinant(matrix)
p hash("cat")
p find(&words, "dog", 0)
p find(&words, "dog", 0)->count
p $->word
p *$
p $.count
print/x sizeof(entry_t)
ptype entry_t
ptype words_t
ptype order_t
ptype/o words_t
x/12cb text
x/s text
x/s text + 4
x/3s text
x/9dw matrix
x/2xg &words
x/2i determinant
info registers rip
p $rip
p/x $sp == $rsp
p $_
display sum
display/x i
n
n
n
info display
undisplay
until
advance main
fin
display
call determinant
call searches
call searches = 5
c
return
c
bt
p $_exitcode
info locals
list
