"""A standing guest looked at: backtraces, variables, the views that front ends show.

`backtrace` and `frame_variables` describe frames, `threads` who is there and what each waits for,
`standstill` a guest in which all wait for each other; `viewing` makes the frozen views.
"""
