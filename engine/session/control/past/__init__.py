"""The past of a recorded run: travelling in it, searching it, its hits, its log, its branches.

A front end stands in the run itself or in the past (`position`), and `travel` leads from one to
the other. `backwards` moves in the past; `search` finds the hits of what a motion stops at,
`writes` what wrote memory or a register, `conditions` when an expression became true, and
`origins` where a value came from, at whose end there may be `inputs` of the program. `hits` goes
through the hits of probes phase by phase. `log` records the past with what is placed now; `refill`
keeps the log of a run true to that, in one piece or in `epochs` by several processes. `branches`
are runs that go on from moments of the past, and `comparison` says where two of them part.
"""
