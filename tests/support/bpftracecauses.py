"""Why runtime tests of bpftrace that are run here are not as they expect."""

from typing import Final

CAUSES: Final = {
    "basic.errors on non existent file": "our words for a file that is not there",
    "basic.warning on non existent file": "our words for a file that is not there",
    "basic.non existent library include fails": "headers are not read",
    "interop.interop return types": "a library in C of bpftrace's own",
    "json-output.invalid_format": "our words for a value of an option",
    "stdlib.assert_macro": "the place of assert() is told, not one within the standard library",
    "variable.variable address with builtin": "a name of a user has no bytes, and no address",
    "dwunwind.dwunwind error when no target process specified": "stacks need no process",
    "intcast.Sum casted retval": "exit() ends at once; bpftrace counts on until it hears of it",
    "probe.uprobe_address_fail_resolve": "the place in the script is told as well",
    "probe.uprobe_zero_size": "functions whose size is not told are probed: their code is known",
    "probe.uprobe_zip_archive": "programs in archives are not looked for",
    "uprobe.uprobes - list probes by pid": "-l alone lists no functions of programs",
    "call.ustack_with_inlined_funcs": "a libc without symbols is expected; ours are shown",
    "btf.redefine_btf_type_missing_def": "types of BTF are known beside those of the script",
    "btf.btf_char_array_to_string": "begin runs before the kernel: no task is named bpftrace",
    "probe.fentry_multiple_attach_point_multiple_functions": "one second is over before init runs",
    "probe.kprobe_module_missing": "probes wait for modules that are not loaded yet",
    "probe.kprobe_disallow_rcu_functions": "actions do not use RCU: its functions can be probed",
}
"""Causes by the names of tests."""
