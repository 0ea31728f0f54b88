"""A small machine that boots a Linux kernel: memory, clock, interrupts, console, disks.

It is a second kind of guest beside `engine.linux`: there the engine is the kernel, here the kernel
is the guest's own, and the engine is the hardware.

- `machine` puts the hardware together: `clock`, `interrupts`, `timer`, `realtime`, `serial` with
  the `console` behind it, and for disks `pci`, `virtiopci`, `virtqueue`, `virtioblock`, `rawdisk`.
- `linuxboot` lays a kernel out; `ramdisk` makes what it unpacks first, of a folder (`hosttree`)
  and modules (`moduletree`), written by `cpioarchive`.
- `stepping` stops and steps a machine, which changes nothing of what it does; `consolelog` has its
  console repeat a stretch of a boot.
- `snapshot` keeps a machine in a file; `pages` compares two memories. `agent` is a program that is
  put inside to be asked about the kernel's files, by way of the `mailbox`.
- `probing` calls back where the kernel's code comes to a place, or returns; `addresses` reads its
  memory, `currenttask` the task that runs, `kernelmodules` the modules that it loads, `kernelcode`
  the frames of code that its image does not describe, `kernelprobes` the kprobes of its own.
- `programs` does the same in the programs of the booted system, whose files `wantedfiles` knows by
  the paths of `guestpaths`; `programpages` reads what they have not touched, `records` structures
  of the kernel.
"""
