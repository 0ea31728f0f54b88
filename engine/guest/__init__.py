"""The guest as the engine sees it: memory, threads, what is loaded, and what is handed down.

`memory` is its address space; `modules` names addresses; `hooks` is the record that the
session fills so that probes, traces and the journal take part without being imported here.
"""
