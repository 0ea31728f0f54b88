"""A guest under control of a front end: it runs, stops, steps, and is changed in between.

`control` carries out commands and tells events; `running` and `stepping` move the guest. The
probes that a user has placed are a `probe_list` of `entries` (`list_changes`, `probe_views`),
which outlives a run as filters and triggers (`event_rules`), traced functions (`graph_switch`)
and traced system calls (`syscall_switch`) do. `editing` changes a standing guest and takes
changes back.
"""
