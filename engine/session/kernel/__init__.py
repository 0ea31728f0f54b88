"""Kernel images, asked and called.

`opened` puts together what belongs to one image: names, `image_tables`, `live_text`, types and the
rules of its version. `definition_answers` answers for definitions as that kernel's `kprobe_events`
would, `exported` writes them for other tools, `verdict_rows` judges functions and whole texts,
`patched_rows` puts live text beside the file's.

A `supervisor` calls functions in a guest's thread, in a `kernel_memory`, written as `call_syntax`
reads them: `call_arguments` makes what they are given, `call_results` has words for what comes
back, and `services` stand for functions that need a running kernel.
"""
