"""The IA-64 core: slots are compiled to Python functions, and to machine code if they run often.

`translate` makes Python with an `Emitter`, `jit` machine code with a `JitCode`, where llvmlite is
installed. `insns_*` describe instructions once for both (`writer` says how); an instruction of
those formats is added there alone. Loads, branches, moves and floating point are written twice, in
`emit_*` and `jit_*`: state is lists and methods for Python but words of a buffer for LLVM, so that
they have little in common but their decoding.
"""
