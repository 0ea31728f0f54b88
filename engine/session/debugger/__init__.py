"""gdb's words for a guest under control: `break`, `next`, `print`, `x`, `info locals`.

- `debugger`: the state behind all words; `output`: what they print, and the file of
  `set logging`; `kept_values`: the value history and convenience variables; `named_threads`:
  threads by number; `frames`: the frame that is looked at, and how gdb writes frames, `arguments`
  with those of a call; `places`: where a breakpoint's text leads (`main`, `file.c:12`,
  `*0x401136`), and `bodies`, where a function's body begins.
- `stops`: breakpoints, watchpoints and catchpoints by number; `stop_conditions`: what is asked at
  their hits; `late_places` moves breakpoints whose files come and go; `stop_reports` says how a
  move has ended; `stoptables` writes the lists of them, `signal_rules` is what is done with
  signals, `saving` keeps stops for another session.
- `command_table`: the table of all words. `looking`, `assembly`, `listing`, `describing`,
  `filetexts`, `macro_words`, `mapping_words`, `searching`, `frame_words`, `tasks` and
  `goroutine_words` carry out those that look; `breaking`, `many_breaks`, `skipping`,
  `watchpoint_words`, `catching` (with the messages of `rust_panics`), `moving`, `moments` (of a
  recorded run), `branching`, `changing` and `dumping` the others. `virtual_tables` shows objects
  as their virtual functions tell, `applying` carries words out for several frames or threads,
  `elsewhere` answers those that are not here; `settings` are what `set` and `show` name
  (`inert_settings` those that change nothing), `program_calls` calls functions where the program
  stands,
  `marker_values` those of static probes, `own_functions` what `$_NAME` means, `signal_info` what
  `$_siginfo` does; `returned` is the value that `finish` prints; `past_conditions` keeps what an
  expression meant at the place where the user typed it, for searches of the moments at which it
  was true.
- `completing` completes lines that are being typed: `line_grammar` has the arguments of each word,
  `completing_names` functions and places, `completing_values` the names in expressions.
- `script`: lines and blocks; `word_arguments`: what stands behind a word; `interpreter` carries
  them out, in a run without the interface too; `console` does it for lines typed at the
  interface.

What names mean in a frame is in `session.inspect.frame_scope`, as traces ask it too.
"""
