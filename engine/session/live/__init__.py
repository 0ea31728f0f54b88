"""The running kernel of this machine: its probes record what a guest's probes would.

`tracefs` finds the kernel's files and writes to them, `instance` is a trace instance and a group
of events of our own, which go at the end, or with the next start after a kill. `kernel_probes`
turns the definitions of a session into the kernel's lines, which are uprobes, or kprobes of an
image that `running_image` knows for the running kernel's; `held_program` starts a program that
waits until its probes stand. `recording` is the whole of it, up to a signal of `stop_signals`:
`buffers` reads what was recorded, `processes` knows names and files in memory of those who
recorded it by the kernel's notices (`sideband`), `kernel_symbols` the kernel's; `histograms`
counts what the triggers ask for. `machine_files` are the files that definitions name, as this
machine has them, and `ifunc_choice` knows the code that indirect functions stand for here: a
`resolver_process` calls their resolvers.

For a guest and the kernel side by side an `eventlog` has the events of each (`guestlog`: the
guest's), `comparison` says what differs and why, and `standins` are streams for the second run.
"""
