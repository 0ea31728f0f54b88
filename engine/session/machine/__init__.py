"""Booted machines that are stopped, stepped and gone back in.

`debugging` is a machine in the hands of a debugger: `past` moves it to and fro, from the moments
that `checkpoints` keeps; `symbolfile` makes a file of its kernel's symbols and frames for gdb.
`catches` are the places where a kernel tells of an oops, a warning or a panic.
"""
