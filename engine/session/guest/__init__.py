"""A guest from its start to its end: built from a configuration, run, probed.

`loading` and `session` wire the processor, the memory and the guest's kernel together. `probing`
adds the probes when somebody asks for them (`resolving` knows the code that indirect functions
stand for in a guest), which are `wanted_probes`: in each address space their machinery and what
stands for them there is a `probed_space`, whose code `guest_code` knows, and its files' places
`space_addresses`; very many of one file are `dormant_wanted`; slots and detours have their
`engine_room` there. `outputs` are the files of the
host's that a run writes, the schedule's (`schedule_file`) among them. `terminal` is a terminal of
the guest's own. `watchpoints` watch bytes in each address space, `entering` stands at the begin of
a function with its arguments given, `calling` calls one on a copy of the memory and tells which
pages it has changed, and `called_frames` are those of calls in the guest itself.
`called_functions` plants what a kernel image's are served. `past`
is a guest that is lived through again, `branch` a live one that is brought to a moment of
another's; where that one is in a recording, `granted` are the files of this host that it sees
from there on. `kernel_stacks`, `kernel_tasks` and `user_programs` are what a guest knows of its
tasks and of their programs that is a kernel itself; `kernel_files` are the files in its memory,
`user_files` those of them that its programs run.
"""
