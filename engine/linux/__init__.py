"""The guest's kernel: Linux's user-mode interface, in Python.

`process` is what a program's system calls read and change, `kernel` runs it; `table` lists
the system calls, one family a file; `loader` starts programs; `fs` is what the guest sees of
files. A handler is a plain function of the process (files ask for less: `context`) and raw
arguments that returns a number or a `Wait`; it never blocks.
What comes from the host enters in one place (`fs.stdio.HostIO`), so that it can be journalled.
"""
