"""The IA-64 core: slots are compiled to Python functions, and to machine code if they run often.

`translate` and `emit_*` make Python; `jit` and `jit_*` machine code, where llvmlite is installed.
"""
