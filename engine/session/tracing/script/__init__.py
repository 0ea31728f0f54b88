"""Scripts of bpftrace attached to a guest: places, types, events, and the run itself.

`places` finds what a probe of a script names, `surroundings` tells the checker what the guest
knows, `events` makes events of a trace of it, `running` runs actions over the rows, and `listing`
lists what there is. The language is `engine.trace.bpftrace`.
"""
