"""The guest's kernel: Linux's user-mode interface, in Python.

Who there is, from the whole to its parts: a `machine` has all processes and one processor; a
`process` (a thread group) is what its threads have in common, its memory is a `space`, and a
`thread` makes system calls. `kernel` is the loop that runs them: it gives the processor to whom
`scheduler` says (`turns`, a `schedule` that is followed), has `dispatch` carry calls out and
`delivery` deliver signals. `quick` says which calls need not stop the processor where nobody
looks. `init` is process 1, of which nothing is ever run.

`table` lists the system calls, one family a module. A handler is a plain function of its thread
(those of files and time ask for less: `context`) and of raw arguments; it returns a number, or a
`wait` where it would block, and never blocks itself: `blocking` says when a wait is over.

- Lives: `loader` starts a program, beside which it maps the `vdso`, `cloning` makes threads and
  processes, `exec` puts another program in the place of one, `tasks` and `reaping` end them,
  `jobs` stops and continues them. `images` are the files that were read for it; `thread_events`
  tells layers above of all this.
- Debuggers inside: `ptrace` is the call, a `tracee` a thread as its tracer has it; `ptrace_resume`
  has the moments at which that stops, `restarts` calls that its signals interrupt, `debugregs`
  what its debug registers do; `tracedmemory` and `processvm` are memory of others.
- Waiting for each other: `futex` on its `futexqueues`; `msg`, `sem` and `shm` over `sysv`.
- Signals: their state in `signals`, calls in `signalcalls` and `signalfiles`; time in `clock`,
  calls in `time`, timers in `timers` and `posixtimers`.
- Calls about files: `files`, `descriptors`, `dirs`, `stat`, `transfer`, `poll`, `pipes`, and with
  an object of their own in `fs`: `filelocks` (`fs.locks`), `notify` (`fs.inotify`), `xattr`
  (`fs.xattrs`). `coherence` keeps what is mapped and what is written the same.
- `uring` has the calls of io_uring, whose file is `fs.uring`; `uringrequests` carries out what
  its entries ask for, by the system calls that they stand for (`uringcalls`).
- `fs` is what the guest sees of files, `net` its network, `procview` fills /proc.
- `world` describes what of Linux there is, by asking.

What comes from the host enters in one place (`fs.stdio.HostIO`), so that it can be journalled.
"""
