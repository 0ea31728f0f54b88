"""Scripts of bpftrace: read, checked, compiled, and the values and maps that they work with.

`text` is a script's text with its positions and the errors that point into it; `tokens` cuts it,
`parser` makes the `tree` of it, with `expressions` and `statements`; `attach_points` tells what
places are meant, `imports` puts the texts of imported files behind it, and `c_definitions` makes
types of what is C in it. What a script means is found by `checking`: types of all values
(`types`), macros and constants, what a builtin or a function (`functions`) takes and gives.
`compiling` makes Python of a checked action, which runs over rows that were recorded: its
`source_lines` are of `statement_code`, `expression_code`, `call_code` with `function_code`, and
`conversion_code`, and `script_memory` has what `&$x` points to; `capturing` finds the `captures`,
what a row has to hold for it. A run's `state` is its maps and its output. `values` and `maps` are
what runs work with, `printing` and `json_lines` show it.

Nothing here knows a guest: `engine.session.tracing.script` attaches scripts to one. The language
is that of bpftrace 0.26 (docs/language.md, docs/stdlib.md of its sources), with 0.17's spellings.
"""
