"""Servers that let other people's front ends drive a guest.

gdb's remote protocol: `packets` is the framing, `address` where a server listens, `peers` who has
connected, `packet_streams` what bytes come by, `connection` and `serving` one front end and all of
them; `taken_output` sends on what a guest writes; `gdbserver` is what gdb asks, `target` has the
documents that it reads, `gdbsignals` its numbers of signals, `guestfiles` what it wants to know
of files. `dap` is the protocol of editors. Both have `commandline`,
lines that are passed on, `programmemory`, `watched`, bytes that stop the guest, and `attention`,
which a guest that runs pays to both. `web` shows our own front end in a browser.

A booted machine has a server of its own, `machineserver`, which `machineserving` serves:
`answering` is what a connection needs of both servers, `servedfile` the file of symbols that gdb
reads.
"""
