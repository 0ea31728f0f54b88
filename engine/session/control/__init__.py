"""A guest under control of a front end: it runs, stops, steps, and is changed in between.

`control` carries out commands and tells what came of them; those that leave the guest where it
stands are `still_commands`, those that come in while it runs are `heard_commands`; parts get the
run at hand and what is looked at as a `sight`. Runs begin by `run_starts`. A guest and all that
works on it is a `stand`; the `standpoint` says whether a front end stands in the run itself or in
its past, and leads from one to the other. `running` and its `motions` move the guest. The probes
that a user has placed are a `probe_list` of `entries`, which outlives a run as filters and
triggers (`event_rules`) and what is traced (`switches`) do. `focus` is the thread that is looked
at; `editing` changes a standing guest and takes changes back. What is told is told by `telling`,
rows of events by `told_events`, and how things are is shown by `guest_views`. Who carries typed
words out (`typed_words`) sits on a control, and is asked (`asking`) whether to stop at a hit, a
signal, a call or a fork. `travel` leads to the past of a recorded run and back, `backwards` moves
in it (`past_stops` are hits of what it stops at), and `landmarks` are the moments of it that
people look for. `branches` are the runs that go on from moments of the past, `branched_runs`
carries out what is about them, `branching` makes one, `branch_diff` says where two part, and
`branch_events` which of their events differ. Who wrote memory (`memory_writes`) or a register
(`register_writes`) and when something was true (`truths`) is found by living through `stretches`
of it again; where a value came from (`origins`) is a chain of writes, at whose end there may be
`inputs`. A `past_run` is one from its start, with the probes, rules and traces of now in place:
hits of the past are gone through phase by phase in one (`past_hits`), and `refill` keeps the log
true to them by another (`past_log`), or, where no state reaches so far, by `past_epochs`, each
lived through from a checkpoint in a `forked` process.
"""
