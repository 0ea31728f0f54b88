"""A guest under control of a front end: it runs, stops, steps, and is changed in between.

`control` carries out commands and tells events; `running` and its `motions` move the guest. The
probes that a user has placed are a `probe_list` of `entries`, which outlives a run as filters and
triggers (`event_rules`) and what is traced (`switches`) do. `focus` is the thread that is looked
at; `editing` changes a standing guest and takes changes back. Who carries typed words out
(`typed_words`) sits on a control, and is asked (`asking`) whether to stop at a hit, a signal, a
call or a fork.
"""
