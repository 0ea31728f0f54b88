"""Probes: what may be probed (`site`, `lint`), and what plants and serves them.

`manager` registers probes (`kprobe`, `kretprobe`) and owns a `point` for each probed address;
`breakpoint` serves a hit inside the emulator, `hits` outside of it, `breakpoint_machine` one
visible phase at a time. `jump` with `jumprules` and `detours` turns busy points into jumps.
Returns are caught at the places that they lead to (`return_sites`), or by a `trampoline` as Linux
does (`return_catcher` is what both share); `pending_calls` keeps the calls that have not returned
yet, `guestcalls` takes over what detours have done about calls.

The placement rules answer from a file alone, before anything runs. Linux asks less: its
uprobes accept the middle of an instruction, its kprobes only look for boundaries and for
instructions that cannot be stepped. In kernel mode the same rules find the same things, but
only what the kernel refuses is refused.
"""
