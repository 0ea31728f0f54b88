break perform
run
info threads 9
thread find crew
thread name x
thread find ^x$
thread 1.2
thread 0
info threads x
info threads 2-1
thread name
thread find ann
set scheduler-locking on
set scheduler-locking foo
tbreak report thread 1
watch total_hours thread 3
watch total_hours thread 2 if total_hours > 0
watch total_hours thread 2
rwatch total_hours thread 7
continue
info breakpoints
delete 1
delete 4
info threads 8-9
set scheduler-locking off
continue
continue
continue
continue
info breakpoints
p $_siginfo.si_signo
next
p $_siginfo.si_code
stepi
p $_siginfo.si_code
p $_siginfo._sifields._sigfault.si_addr == $pc
p 'printf@got.plt'
p &'printf@got.plt'
whatis 'printf@got.plt'
info address errno
p errno
p &errno == 0
p *__errno_location()
info functions ^pthread_cond_wa
info variables ^stdo
info functions -n ^pass$
info types ^FILE$
info functions -n ^perf
info variables -t job
pwd
detach
info threads
p total_hours
