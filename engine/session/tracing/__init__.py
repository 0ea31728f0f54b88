"""A trace: definitions turned into events, recorded as rows, written as text.

`tracing` is the trace as a whole; `defining` carries out definitions, `event_set` numbers their
events (`alike_lines` of a library in one go, whose `alike_events` have no objects until they are
asked for), `recorders` says how their hits are recorded. `triggers` and filters of an event stand
`armed` around its recorder, which writes to a `filter_buffer` then. `stacks` and `syscalls` are
rows of their own kinds, as is what the scheduler does (`scheduling`), what triggers make
(`hist_triggers`, `synthetic_events`), what other events make (`event_probes`) and what the clock
is asked (`sampling`); `unplaced_events` knows them all; `tasks` choose whose events are recorded,
`programs` know which program a row is from and its files, `row_names` names what rows have numbers
of, `store_events` has stores to data recorded. `output` writes what was recorded; formats of
several files have theirs `placed_files`. `closing_remarks` say at the end which hits were missed
and which calls did not return. `event_output` writes the rows of a log once more, `listing` the
definitions. `graphing` traces whole sets of functions, `typed_calls` their arguments and results
by their types in the source, `library_calls` by prototypes where there is no debug information,
`typed_events` makes events of them; `handlers` loads probes written in Python, whose code shares
the process with us (`shared_process`). `call_tracing` shows system calls as strace does, those of
a `call_choice`, with the `descriptor_texts` of their files and what a `call_injection` does to
them.

`script` attaches a script of bpftrace to a session.
"""
