"""The text of a kernel's own events, by the `print fmt` that the kernel has for each.

A `print fmt` is a format of printk and C expressions over the fields of a record
(include/trace/stages/stage3_trace_output.h). `tokens` are the words of these, `expressions`
compiles them, `text` writes the formats, and what a kernel alone could compute (calls of
functions of its own) is refused, so that an event of that kind is shown by its fields.
"""
