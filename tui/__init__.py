"""The Textual front end and the entry point of the command.

`app` wires the parts and passes on what the engine says; `bridge` is the way to the engine's
thread. A key of `keymap` or a line of `command_line` acts on the objects of `controls`: `motions`,
`probe_editor`, `guest_editor`, `function_trace`, `navigator`, `exploring`, `quitting`; they see
the interface as `desk`. `palette` has all of them by name, found by `fuzzy`. `subcommands` are the
commands that only the interface can carry out. `work_in_hand` tells of a command that takes long.
`stop_messages` says why the guest stands, in `stop_words`. `body` holds the panes and shows those
that `layout` says; `session_restore` brings back what was there the last time. `background` asks
the terminal for its colour, and `asked_driver` keeps the answer apart from keys.

Panes (`panes`) get frozen views and speak in `messages`. Most are a list: a source of lines in a
`widgets.virtual_lines`. `store` is where the events of the log are, each named as `programs` knows
it, `open_values` which values are open; `guest_input` says who has the keys while the guest reads.
A pane is a file in `panes` and a line in `panes.registry`. `lessons` shows exercises step by step.
"""
