break inner
run
frame apply all p $pc
frame apply 1 p x
frame apply -1 p t
frame apply all -q p $_
frame apply all -s p t
frame apply all p y
frame apply all -c p y
frame apply all
frame apply
frame apply x p 1
frame apply 1-2 p 1
frame apply level 1 p x
frame apply level 0-1 -q p x
frame apply level 9 p 1
frame apply level p 1
frame apply all -cs p 1
frame function main
frame function outer
frame function nosuch
frame level 0
frame level 1
frame level 7
frame address 0
frame 0
faas p y
faas -q p y
faas
thread apply all -q p x
thread apply 1 -q p x
thread apply all -s p nosuch
thread apply 1 -s p nosuch
thread apply 7 p 1
thread apply all
thread apply 1
thread apply
taas -q p x
tfaas
p $_thread
p $_inferior
p $_exitcode
p $_strlen("four")
p $_streq("a", "a")
p $_streq("a", "b")
p $_regex("box", "b.*")
p $_regex("box", "o")
p $_memeq("abc", "abd", 2)
p $_as_string(5)
p $_caller_is("middle")
p $_caller_is("main")
p $_caller_is("main", 2)
p $_caller_is("inner", 0)
p $_any_caller_is("main")
p $_any_caller_is("inner")
p $_any_caller_is("outer")
p $_any_caller_matches("^mid")
p $_caller_matches("^mid")
p $_isvoid($nosuch)
p $_isvoid(1)
p $_gdb_setting("print elements")
p $_gdb_setting_str("print elements")
with print elements 3 -- p "abcdef"
with print pretty on
with nosuch
alias zz = print
zz 3
alias zz
alias zz = nosuch
alias -a yy = p
yy 4
info line middle
info line 5
info line skipped.c:9
info line nosuch
tbreak skipped.c:9
tbreak 5
tbreak *0x40161c
forward-search return
forward-search return
reverse-search static
forward-search nosuch
list *$pc
list 3,
list ,4
condition 1 $_streq("x", "x") && x == 3
continue
continue
tbreak outer if $_any_caller_is("main")
continue
set print frame-arguments presence
bt
set print frame-arguments none
bt
show print frame-arguments
show listsize
show confirm
show directories
show substitute-path
info line
info line
info line 9
info line
info line inner
info line
