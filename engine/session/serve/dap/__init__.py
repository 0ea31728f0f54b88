"""The Debug Adapter Protocol: VS Code, nvim-dap and dape drive a guest.

`framing` cuts what comes into messages and writes those that go, `requests` and `bodies` are what
is in them, `editor` is the other end. `dapserver` gives each request to its handler, also while
the guest runs: `motions` move it, `stops` say where it stops, `inspection` looks at it, `console`
carries out lines that are typed; a request is a line in the `handlers` of one of them. They work
on a `debuggee`, which moves by gdb's words: `launching` says which guest, `breakpoints` and
`exceptions` are its stops, `variables` its frames and values in numbers, `goroutine_threads` a Go
program's goroutines as threads, `code` its instructions, `sources` its files, `streams` its
standard streams; `announcer` tells what becomes of it.
`dapserving` is one session.

Source: the specification of the protocol, version 1.71, on microsoft.github.io.
"""
