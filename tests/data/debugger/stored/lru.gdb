set listsize 5
list main
list store::clamp
info functions clamp
info types Level
info variables alive
ptype Cache
ptype Shared
whatis Cache
break make
condition 1 size == 4
break store::Lru<std::string, std::shared_ptr<store::Blob>, 3>::evict
break store::clamp
info breakpoints
run
info args
print name
print size
print *this
bt
next
print blob
print *blob
print blob->name
print blob->bytes
print blob->bytes.size()
print blob->bytes[0]
print/x blob->bytes[0]
print/x blob->bytes
print blob->level
print/d blob->level
next
print blob->level
print store::Hot
print store::Hot | store::Warm
print (store::Level)6
print (store::Level)9
print blob.get()
print *blob.get()
print blob.use_count()
print store::Blob::alive
ptype store::Blob
ptype blob
whatis blob
whatis *blob
up
info locals
print keys
print keys[i]
print *keys@4
print cache
print cache.order_
print cache.index_
print cache.stats_
print cache.size()
print cache.stats()
print cache.stats().ratio()
print watcher
print own
print *own
print own->name
print own.get()
print small
print small.order_
print sizeof(small)
continue
bt
frame
print victim
next
print victim
print this->order_.size()
print order_
print index_.size()
step
finish
set print pretty on
print stats_
print small
set print pretty off
print gone_
continue
info args
bt
finish
tbreak touch
print $.size()
continue
bt 1
print value
print low
whatis value
ptype value
info symbol $pc
finish
print $
print $$
continue
finish
print got
print missed
info locals
print evicted
print evicted[0]
print evicted.size()
print evicted.empty()
print limited
next
next
print fraction
print expired
printf "%d %d %s\n", got, missed, evicted[0].c_str()
printf "%5.2f|%-6d|%c\n", fraction, again, 'x'
echo hello\tworld\n
output got
output/x got
print got == 5 && missed < 0
print !expired
print ~got
print -missed * 3 % 2
print got > 3 ? 10 : 20
set var got = 77
print got
print $rip
info line
p $_siginfo.si_signo
tbreak store::Blob::~Blob
continue
bt
print *this
finish
next
next
print own
print own.get()
continue
info program
print $_exitcode
show listsize
