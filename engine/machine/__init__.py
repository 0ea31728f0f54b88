"""A small machine that boots a Linux kernel: memory, clock, interrupts, console.

It is a second kind of guest beside `engine.linux`: there the engine is the kernel, here the kernel
is the guest's own, and the engine is the hardware.
"""
