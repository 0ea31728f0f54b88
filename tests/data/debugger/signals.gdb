catch syscall getppid
catch fork
handle SIGUSR1 nostop print
info signals SIGUSR1
break on
run
bt 1
finish
continue
info breakpoints
continue
continue
delete
handle SIGUSR1 stop nopass
continue
print hits
signal SIGUSR1
continue
print $_exitcode
print $_exitsignal
delete
catch signal SIGUSR1 SIGSEGV
tcatch exec
catch syscall 110 getpid
condition 6 hits > 3
info breakpoints
handle SIGUSR1 pass stop
run
continue
signal 0
catch nosuch
