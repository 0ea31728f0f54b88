"""Scripts of bpftrace attached to a guest: places, types, events, and the run itself.

`script_source` reads a script and what it imports. `places` finds what a probe of a script names,
`script_symbols` what `uaddr()` does, `surroundings` tells the checker what the guest knows,
`events` makes events of a trace of it, with `memory_values` where memory is read at a hit.
`attached` puts them together, `running` runs actions over the rows, whose `output` goes out before
the guest goes on, `moments` has the maps of earlier moments, `listing` lists what there is, and
`completing` offers what may be typed. The language is `engine.trace.bpftrace`.
"""
