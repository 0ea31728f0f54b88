"""A guest under control of a front end: it runs, stops, steps, and is changed in between.

A command goes this way: a front end's source gives it to the `loop`, which decides whether it is
carried out now or waits; the table of `handlers` finds what carries it out, and what it means
where the past is looked at. `control` puts the parts together and begins runs.

- `runs`: how a run begins, what is told of it, what is kept of it.
- `sight`: the run at hand, what is looked at in it, and its views; `file_progress`: how far the
  file is read that a question needs.
- `guest`: a guest and all that works on it; `running` moves it, to the places of `motions`,
  in the `stepping_thread` that they began in;
  `focus` is the thread in sight; `editing` changes it, and takes changes back.
- `probe_list`: the probes that a user has placed, of `entries`; `tracing_choices`: what else is
  recorded. Both outlive a run, as does the script of `script_switch`, of which a run has a
  `shown_script`.
- `past`: the past of a recorded run, and the branches that leave it.
"""
