"""The IA-64 core: slots are compiled to Python functions, and to machine code if they run often.

`translate` makes Python with an `Emitter`; `jit` makes machine code with a `JitCode`, if llvmlite
is installed. `insns_integer` describes instructions once for both; an instruction of its kinds is
added there alone. Loads, branches, moves and floating point are written twice, in `emit_*` and
`jit_*`: the state is lists and methods for Python but words of a buffer for LLVM, so both sides
share little but the decoding.
"""
