"""Probes: places that may have them, and the machinery that plants and serves them.

`manager` puts the machinery of one address space together, or that of a copy of another one.
`registry` registers probes (`kprobe`, `kretprobe`) where `admission` lets it, and `arming` plants
a breakpoint at each `point`; very many uprobes are `dormant`: they have none until they are hit.
`breakpoint_actions` carries a hit out inside the emulator (the first ones of a point with what all
points share, later ones with what is made for it), `hits` outside of it (`current_hit` is the one
that is served), `breakpoint_machine` one visible phase at a time. Hits that only record go through
code in the guest, which `detour_keeper` keeps: `recorded_breakpoints` has a breakpoint lead there,
the jump technique a jump. `handler_reach` says which handlers may run inside.

`techniques` is the list of what may take a breakpoint's place, `technique` what each of them has
to do, and `arbitration` who does it when: `jump` with `jumprules` and `detours`, `djprobe`, and
`nop5`: `nop_call` with `nop_call_rules`, `uprobe_trampoline` and its `trampoline_table`.
`jumpwindows` answers the rules of a jump for all instructions of a function in one pass.
`return_catchers` is the list of ways to catch returns, `return_catcher` what each has to do: at
the places that calls return to (`return_sites`), by a `trampoline` as Linux does, or by Owens'
(`owens`). `pending_calls` keeps the calls that have not returned yet, `guestcalls` takes over what
detours have done about calls, `stack_moves` follows Go's runtime, which moves stacks (`goroutines`
finds them).

The rules for placing probes (`site`, `placement_rules`) answer from a file alone, before anything
runs; what neighbours share is asked once for all of them. Linux asks less: its uprobes accept
the middle of an instruction, its kprobes only look for boundaries and for instructions that cannot
be stepped. In kernel mode the same rules find the same things, but only what the kernel refuses is
refused. `kernel_places` judges places in a kernel's own text, by that kernel's rules, and
`machine_breakpoints` plants breakpoints in the kernel of a booted machine.
"""
