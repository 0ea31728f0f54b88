"""Scripts of bpftrace on a booted kernel: an action runs at the hit, while the machine stands.

`kernel_points` finds what a probe of a script names, in programs by `program_points`,
`kernel_types` tells the checker what the kernel knows, `hits` says how an action reads registers,
memory and records, `task_facts` reads the task that runs, `kernel_run` is what actions ask of the
run, and `attached_boot` puts it all together. The language is `engine.trace.bpftrace`.
"""
