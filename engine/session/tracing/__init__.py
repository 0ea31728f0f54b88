"""A trace: definitions turned into events, recorded as rows, written as text.

`tracing` is the trace as a whole; `defining` carries out definitions, `event_set` numbers their
events, `recorders` says how their hits are recorded. Filters and triggers of an event are `armed`
(`triggers`, `filter_buffer`, `filter_names`, `histograms`). `stacks` and `syscalls` are rows of
their own kinds, `output` and `tail` write what was recorded, `exporting` the definitions.
`graphing` traces whole sets of functions (`graph_rows`), `handlers` loads probes written in
Python.
"""
