"""The Textual front end and the entry point of the command.

`app` puts the panes together; what a key does is in `motions`, `probe_editor`,
`session_restore`, and every key in `keymap`; what is seen at which size in `layout`. `bridge` is
the way to the engine's thread.
Panes (`panes`) get frozen views and speak in `messages`; `widgets` is what they are made of, and
`store` where the events of the log are. A pane is a file there, a line in `layout` and in `app`.
"""
