"""A standing guest looked at: backtraces, variables, the views that front ends show.

`backtrace` and `frame_variables` describe frames, `viewing` makes the frozen views.
"""
