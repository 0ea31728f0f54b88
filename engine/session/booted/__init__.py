"""A booted kernel under probes: its trace, its functions' calls, its programs, its stacks.

A booted kernel is no session of a program. `tracing` is its trace as a whole and `probes` its
definitions; `modules` places those of modules as they are loaded. `programs` run on the kernel,
`program_places` finds the places of definitions in their `files`, and `program_probes` records the
hits there. `graph` traces whole sets of functions. `stacks` and `tasks` say who has called and
which task it was, `frames` with names and lines, and `memory` is what a fetch argument reads.

`kernel_events` are those that a kernel has itself; `event_hits` tells when they happen, to traces
and scripts, and `event_rows` makes rows of them. `made_events` come of others: synthetic ones and
event probes.

`script` attaches a script of bpftrace.
"""
