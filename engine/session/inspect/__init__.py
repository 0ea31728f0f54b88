"""A standing guest looked at: backtraces, variables, the views that front ends show.

`backtrace` and `frame_variables` describe frames, whose values open as `value_lines`; `tail_calls`
finds frames of functions that have ended in a jump, `called_functions` those behind calls that a
debugger has made in the program; `frame_scope` is what names mean in a frame; its parts are
`frame_registers`, `frame_memory`, `variable_places`, and `top_names` for those that files have at
their top. `program_files` are the files with the names, `linkmap` the list of them that the
program's loader keeps, `cpp_names` finds those of C++, `frame_values` tells where a computed
variable is, `saved_registers` where a frame has saved its caller's registers, `entry_values` what
a function was called with, `passed_arguments` what a called function is given,
`watched_expressions` what bytes a value depends on, `function_results` where functions leave their
results, `go_results` those of Go, `telescope` where a word leads, `object_layout` which part of an
object each byte is. `threads` tells who is there and what each waits for, `standstill` of a guest
in which all wait for each other, `troubles` what was asked for in vain; `viewing` makes the frozen
views.

Of a Go program `goroutines` are read from its runtime, `goroutine_views` describes them, and
`go_stacks` joins the stacks that its threads change between.
"""
