"""Processors: one protocol, Unicorn behind it, and the memory both sides share.

`ram` owns the guest's physical memory and the page table; `native` the host machine code of
the hottest callbacks; `unicorn_cpu` runs Unicorn; `unicorn_machines` holds what Unicorn needs
per machine. Nothing here knows of Linux.
"""
