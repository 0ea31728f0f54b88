"""Kernel images: vmlinuz, vmlinux, raw Images and modules, read without a running kernel.

`recognition` tells them from programs, `packing` (with `lzo`) takes an image out of its wrappers,
`kallsyms` finds the names in it, `givennames` those that come with it, `rawimage` and `kernelelf`
make an ELF file of it, so that whatever reads programs reads kernels. `imagecache` keeps that
file, and what was derived of it as `columnfile` writes it; `scratch` holds what is kept nowhere.
`modules` lays a module out as the kernel's loader would. `opening` opens either by its path, and
`kernelimage` is what one gets: bytes, names, version.

Types come from `btf` and `btftypes`; `btffile` finds them in a file, `btfscopes` has them where
debug information is asked. `orc` are the unwind tables. `sitetables` are the places in the text
that probes and patches ask for, `events` (with `eventarray`) the trace events that the kernel has
itself, `cpumodel` the CPU that it is said to boot on. `tasklayout` are the tasks of a kernel that
runs as a program, `filelayout` the files that their programs map, both read from its code by
`codefields`; `initramfs` are the files that a kernel begins with.
"""
