"""The guest as the engine sees it: memory, what is loaded there, and what is handed down.

`memory` is one address space, of which a guest may have many: its mappings and their pages, what
the processor has translated of them (`translations`), bytes in and out; `firsttouch` gives pages
to vast mappings where they are touched. `text` owns what is
planted in code; `modules` names addresses; `hooks` are the records that the session fills, one for
each address space and one for the guest, so that probes, traces and the journal take part without
being imported here.
"""
