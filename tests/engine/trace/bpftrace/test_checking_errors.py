"""Wrong scripts: each has one error, with its place and bpftrace's words."""

from typing import Final

import pytest
from scriptkit import checked

from engine.trace.bpftrace.text import WrongScriptError

WRONG: Final = (
    (
        "begin { print(«fooo»); }",
        "Unknown identifier: 'fooo'",
    ),
    (
        "begin { «foo(1)»; }",
        "Unknown function: 'foo'",
    ),
    (
        "begin { print(«$x»); }",
        "Undefined or undeclared variable: $x",
    ),
    (
        "begin { $x = 1 }}«»",
        "syntax: expected '{'",
    ),
    (
        'begin { printf("%d" «1»); }',
        "syntax: expected ')'",
    ),
    (
        "begin«»",
        "syntax: expected '{'",
    ),
    (
        'begin { @x = 1; «@x = "a"»; }',
        "Type mismatch for @x: trying to assign value of type 'string[2]' when "
        "map already has a type 'int8'",
    ),
    (
        'begin { @x = "a"; «@x = 1»; }',
        "Type mismatch for @x: trying to assign value of type 'int8' when map "
        "already has a type 'string[2]'",
    ),
    (
        'begin { $x = 1; «$x = "a"»; }',
        "Type mismatch for $x: trying to assign value of type 'string[2]' when "
        "variable already has a type 'int8'",
    ),
    (
        'begin { @x[1] = 1; «@x["a"]» = 1; }',
        "Argument mismatch for @x: trying to access with arguments: 'string[2]' "
        "when map expects arguments: 'int8'",
    ),
    (
        'begin { @x[1, "a"] = 1; «@x[1]» = 1; }',
        "Argument mismatch for @x: trying to access with arguments: 'int8' when "
        "map expects arguments: '(int8,string[2])'",
    ),
    (
        "begin { @x = 1; «@x[1]» = 1; }",
        "@x used as a map with an explicit key (non-scalar map), previously "
        "used without an explicit key (scalar map)",
    ),
    (
        "begin { @x[1] = 1; «@x» = 1; }",
        "@x used as a map without an explicit key (scalar map), previously used "
        "with an explicit key (non-scalar map)",
    ),
    (
        "begin { print(«@x»); }",
        "Undefined map: @x",
    ),
    (
        "begin { clear(«1»); }",
        "clear() expects a map argument",
    ),
    (
        "begin { zero(«$x»); }",
        "zero() expects a map argument",
    ),
    (
        "begin { @x = 1; «delete(@x, 1)»; }",
        "call to delete() with two arguments expects a map with explicit keys (non-scalar map)",
    ),
    (
        "begin { @x[1] = 1; «delete(@x)»; }",
        "call to delete() with a single argument expects a map without explicit keys (scalar map)",
    ),
    (
        "begin { @x = 1; «has_key(@x, 1)»; }",
        "call to has_key() expects a map with explicit keys (non-scalar map)",
    ),
    (
        "begin { @x = 1; «len(@x)»; }",
        "call to len() expects a map with explicit keys (non-scalar map)",
    ),
    (
        "begin { «len(1)»; }",
        "call to len() expects a map, ustack, or kstack",
    ),
    (
        "begin { @x = count(); «@x = 1»; }",
        "Type mismatch for @x: trying to assign value of type 'int8' when map "
        "already has a type 'count_t'",
    ),
    (
        "begin { @x = count(); @x = «sum(1)»; }",
        "Type mismatch for @x: trying to assign value of type 'sum_t' when map "
        "already has a type 'count_t'",
    ),
    (
        "begin { @x = 1; @x = «count()»; }",
        "Type mismatch for @x: trying to assign value of type 'count_t' when "
        "map already has a type 'int8'",
    ),
    (
        "begin { @x = count(); «@y = @x»; }",
        "Map value 'count_t' cannot be assigned from one map to another. The "
        "function that returns this type must be called directly e.g. `@y = "
        "count();`.",
    ),
    (
        "begin { @x = hist(1); @y = 1; «@y = @x»; }",
        "Map value 'hist_t' cannot be assigned from one map to another. The "
        "function that returns this type must be called directly e.g. `@y = "
        "hist(retval);`.",
    ),
    (
        "begin { @x = hist(1); «$y = @x»; }",
        "Value 'hist_t' cannot be assigned to a scratch variable.",
    ),
    (
        "begin { $x = «count()»; }",
        "count() must be assigned directly to a map",
    ),
    (
        "begin { print(«count()»); }",
        "count() must be assigned directly to a map",
    ),
    (
        'begin { @x = «hist("a")»; }',
        "hist() only supports integer arguments (string[2] provided)",
    ),
    (
        "begin { @x = «hist(1, 6)»; }",
        "hist: bits 6 must be 0..5",
    ),
    (
        "begin { @x = «lhist(1, 0, 10)»; }",
        "lhist() requires 4 arguments (3 provided)",
    ),
    (
        "begin { @x = «lhist(1, 10, 0, 1)»; }",
        "lhist() min must be less than max (provided min 10 and max 0)",
    ),
    (
        "begin { @x = «lhist(1, 0, 10, 0)»; }",
        "lhist() step must be >= 1 (0 provided)",
    ),
    (
        "begin { @x = «lhist(1, 0, 100000, 1)»; }",
        "lhist() too many buckets, must be <= 1000 (would need 100000)",
    ),
    (
        "begin { @x = «lhist(1, 0, 5, 10)»; }",
        "lhist() step is too large for the given range (provided step 10 for range 5)",
    ),
    (
        'begin { @x = «sum("a")»; }',
        "sum() only supports integer arguments (string[2] provided)",
    ),
    (
        "begin { @x = «count(1)»; }",
        "count() requires no arguments (1 provided)",
    ),
    (
        "begin { @x[1] = hist(1); «print(@x[1])»; }",
        "Map type hist_t cannot print the value of individual keys. You must print the whole map.",
    ),
    (
        "begin { @x = hist(1); print((1, «@x»)); }",
        "Map type hist_t cannot exist inside a tuple.",
    ),
    (
        "begin { @x = «tseries(1, 1s, 0)»; }",
        "tseries() num_intervals must be >= 1 (0 provided)",
    ),
    (
        'begin { @x = «tseries(1, 1s, 5, "median")»; }',
        "tseries() expects one of the following aggregation functions: avg, "
        'max, min, sum ("median" provided)',
    ),
    (
        "begin { @x = hist(1); @x = «hist(1, 2)»; }",
        "Different bits in a single hist unsupported",
    ),
    (
        'begin { «printf("%d", "a")»; }',
        "unsupported format specifier for type 'string[2]': d",
    ),
    (
        'begin { «printf("%d")»; }',
        "not enough arguments for format string (0 supplied, 1 expected)",
    ),
    (
        'begin { «printf("%d", 1, 2)»; }',
        "too many arguments for format string (2 supplied, 1 expected)",
    ),
    (
        "begin { «printf(1)»; }",
        "printf() expects a string literal (int provided)",
    ),
    (
        'begin { $f = "%d"; «printf($f, 1)»; }',
        "printf() expects a string literal (string provided)",
    ),
    (
        'begin { «printf("%r", 1)»; }',
        "unsupported format specifier for type 'int8': r",
    ),
    (
        "begin { «print(1, 2)»; }",
        "Non-map print() only takes 1 argument, 2 found",
    ),
    (
        'begin { «print(printf("a"))»; }',
        "void type passed to print() is not printable",
    ),
    (
        'begin { «$x = printf("a")»; }',
        "Value 'void' cannot be assigned to a scratch variable.",
    ),
    (
        'begin { «exit("a")»; }',
        "exit() only supports int arguments (string provided)",
    ),
    (
        "begin { «exit(1, 2)»; }",
        "exit() takes up to one argument (2 provided)",
    ),
    (
        "begin { «time(1)»; }",
        "time() expects a string literal (int provided)",
    ),
    (
        "begin { «str()»; }",
        "str() requires at least one argument (0 provided)",
    ),
    (
        "begin { «str((1, 2))»; }",
        "str() expects a string, integer or a pointer type as first argument "
        "((int8,int8) provided)",
    ),
    (
        'begin { «str(1, "a")»; }',
        "str() only supports int arguments (string provided)",
    ),
    (
        "begin { «buf(1)»; }",
        "buf() expects a length argument for non-array type int",
    ),
    (
        'begin { «ksym("a")»; }',
        "ksym() expects an integer or pointer argument",
    ),
    (
        'begin { «ntop("abcdef")»; }',
        "ntop() argument must be 4 or 16 bytes in size",
    ),
    (
        'begin { «pton("a")»; }',
        "pton() expects an string argument of an IPv4/IPv6 address, got a",
    ),
    (
        'begin { «pton("1.2.3.400")»; }',
        "pton() expects a valid IPv4/IPv6 address, got 1.2.3.400",
    ),
    (
        'begin { «macaddr("abcdef")»; }',
        "macaddr() does not support literal string arguments",
    ),
    (
        'begin { «reg("ax")»; }',
        'reg can not be used with "begin" probes',
    ),
    (
        'uprobe:/bin/app:work { «reg("xyz")»; }',
        "'xyz' is not a valid register on this architecture",
    ),
    (
        "begin { «arg0» }",
        "The arg0 builtin can only be used with 'kprobes', 'uprobes' and 'usdt' probes",
    ),
    (
        "uprobe:/bin/app:work { «retval» }",
        "The retval builtin can only be used with 'kretprobe' and 'uretprobe' and 'fentry' probes",
    ),
    (
        "tracepoint:sched:sched_switch { «retval» }",
        "The retval builtin can only be used with 'kretprobe' and 'uretprobe' "
        "and 'fentry' probes (try to use args.ret instead)",
    ),
    (
        "tracepoint:sched:sched_switch { print(«args.nosuch»); }",
        "Struct/union of type 'struct _tracepoint_sched_sched_switch' does not "
        "contain a field named 'nosuch'",
    ),
    (
        "tracepoint:none:none { print(«args».x); }",
        "Cannot read the arguments of tracepoint:none:none",
    ),
    (
        "uprobe:/bin/app:work { print(«args.nosuch»); }",
        "Can't find function parameter nosuch",
    ),
    (
        "begin { print(«args»); }",
        "The args builtin can only be used with tracepoint, rawtracepoint, "
        "fentry/fexit, and uprobe probes (begin used here)",
    ),
    (
        "begin { «func» }",
        "The func builtin can not be used with 'begin' probes",
    ),
    (
        'begin { «uaddr("x")»; }',
        'uaddr can not be used with "begin" probes',
    ),
    (
        "begin { «kstack(2000)»; }",
        "kstack([int limit]): limit shouldn't exceed 1024, 2000 given",
    ),
    (
        "begin { ustack(«fancy»); }",
        "Error parsing stack mode: ustack: Invalid value for stack_mode: valid "
        "values are bpftrace, perf, raw, and build_id.",
    ),
    (
        "begin { «kstack(build_id)»; }",
        "'build_id' stack mode can only be used for ustack",
    ),
    (
        "begin { nsecs(«never»); }",
        "Invalid timestamp mode: never",
    ),
    (
        "begin { pid(«other»); }",
        "Invalid PID namespace mode: other (expects: curr_ns or init)",
    ),
    (
        'begin { «strftime("%H", -1)»; }',
        "strftime() does not accept negative timestamps",
    ),
    (
        'begin { «strftime("%H", nsecs(monotonic))»; }',
        "strftime() can not take a monotonic timestamp",
    ),
    (
        'begin { strncmp("a", "b", «$x»); }',
        "Undefined or undeclared variable: $x",
    ),
    (
        'begin { «strncmp("a", "b", -1)»; }',
        "Builtin strncmp requires a non-negative literal",
    ),
    (
        'begin { «signal("SIGINT")»; }',
        'signal can not be used with "begin" probes',
    ),
    (
        "uprobe:/bin/app:work { «signal(0)»; }",
        "signal() accepts a string literal or an integer between 1 and 64 (inclusive)",
    ),
    (
        'uprobe:/bin/app:work { «signal("NOSUCH")»; }',
        "Invalid string for signal: NOSUCH",
    ),
    (
        'begin { «system("ls")»; }',
        "system() is refused: a script of an emulated guest runs no commands on "
        "the host; print what the command needs and read it behind a pipe",
    ),
    (
        "begin { «override(1)»; }",
        "override() is refused: a script only watches the guest; change a "
        "result with a handler instead (kprobe-tui help handlers)",
    ),
    (
        'begin { $x = «"a" * 2»; }',
        "Type mismatch for '*': comparing string[2] with int8",
    ),
    (
        'begin { $x = "a"; $y = «$x + 1»; }',
        "Type mismatch for '+': comparing string[2] with int8",
    ),
    (
        'begin { if («"a" == 1») { } }',
        "Type mismatch for '==': comparing string[2] with int8",
    ),
    (
        "begin { «if (comm) { }» }",
        "Invalid condition: string",
    ),
    (
        "begin { $x = (1, 2); print(«$x.2»); }",
        "Invalid tuple index: 2. Found 2 elements in tuple.",
    ),
    (
        "begin { $x = 1; print(«$x.a»); }",
        "Can not access field 'a' on expression of type 'int8'",
    ),
    (
        "begin { $x = (a=1); print(«$x.b»); }",
        "Record does not contain a field named 'b'",
    ),
    (
        "begin { $x = 1; print(«$x[0]»); }",
        "The array index operator [] can only be used on arrays, pointers, and "
        "tuples, found int8.",
    ),
    (
        'begin { $x = "abc"; print(«$x[10]»); }',
        "the index 10 is out of bounds for array of size 4",
    ),
    (
        "begin { print((«struct nosuch *»)0); }",
        'Cannot resolve unknown type "struct nosuch"',
    ),
    (
        "begin { $t = (struct task_struct *)0; print(«$t.nosuch»); }",
        "Struct/union of type 'struct task_struct' does not contain a field named 'nosuch'",
    ),
    (
        "begin { print(«(string)»1); }",
        'Cannot cast from "int8" to "string"',
    ),
    (
        'begin { print(«(int32)»"abc"); }',
        'Cannot cast from "string[4]" to "int32"',
    ),
    (
        "begin { print(«(enum colour)»7); }",
        "Enum: colour doesn't contain a variant value of 7",
    ),
    (
        "begin { let $x: «nosuch»; }",
        'Cannot resolve unknown type "nosuch"',
    ),
    (
        "begin { let $x: «count_t»; }",
        "Invalid variable declaration type: count_t",
    ),
    (
        "begin { let $x = 1; «let $x = 2»; }",
        "Variable $x was already declared. Variable shadowing is not allowed.",
    ),
    (
        "begin { «let $x: int8 = 300»; }",
        "Type mismatch for $x: trying to assign value of type 'int16' when "
        "variable already has a type 'int8'",
    ),
    (
        'begin { «let $x: string[2] = "abcdef"»; }',
        "Type mismatch for $x: trying to assign value of type 'string[7]' when "
        "variable already has a type 'string[2]'",
    ),
    (
        "begin { «break;» }",
        "'break' statement is not allowed in a probe",
    ),
    (
        "begin { «continue;» }",
        "'continue' statement is not allowed in a probe",
    ),
    (
        'begin { «return "a";» }',
        "Probe return values can only be integers. Found string[2]",
    ),
    (
        "begin { «unroll(0) { }» }",
        "unroll minimum value is 1",
    ),
    (
        "begin { «unroll(101) { }» }",
        "unroll maximum value is 100",
    ),
    (
        "begin { unroll(«$x») { } }",
        "Undefined or undeclared variable: $x",
    ),
    (
        'begin { «for ($i : "a".."b"») { } }',
        "Loop range requires an integer for the start value",
    ),
    (
        "begin { @x = 1; for ($kv : «@x») { } }",
        "@x has no explicit keys (scalar map), and cannot be used for iteration",
    ),
    (
        "begin { $i = 1; for («$i» : 0..3) { } }",
        "Loop declaration shadows existing variable: $i",
    ),
    (
        "begin { @x = hist(1); for ($kv : «@x») { } }",
        "@x has no explicit keys (scalar map), and cannot be used for iteration",
    ),
    (
        'begin { "a"«++»; }',
        "syntax: increment/decrement requires a variable or map",
    ),
    (
        'begin { «-"a"» }',
        "The - operator can not be used on expressions of type 'string[2]'",
    ),
    (
        "begin { print(«*(void *)0»); }",
        "The * operator cannot be used on a pointer to an unsized type (void *).",
    ),
    (
        "begin { print(«1 / 0»); }",
        "unable to fold literals due to overflow or underflow",
    ),
    (
        "begin { print(«1 << 64»); }",
        "unable to fold literals due to overflow or underflow",
    ),
    (
        "begin { print(«18446744073709551615 + 1»); }",
        "unable to fold literals due to overflow or underflow",
    ),
    (
        "begin { if comptime («pid») { } }",
        "Unable to resolve comptime expression",
    ),
    (
        "begin { print(«&@x»); }",
        "The address of @x is refused: what a script has is not in the guest's "
        "memory; use the value itself",
    ),
    (
        'begin { «fail("no %s", "way")»; }',
        "no way",
    ),
    (
        'begin { «static_assert(1 == 2, "one is not two")»; }',
        "one is not two",
    ),
    (
        "begin { getopt(«1»); }",
        "First argument to 'getopt' must be a string literal.",
    ),
    (
        'begin { getopt("a", 1); «getopt("a", 2)»; }',
        "Command line option 'a' needs to have the same default value in all "
        "places it is used. Previous default value: 1",
    ),
    (
        "begin { print(«sarg0»); }",
        "sarg* is deleted. This was deprecated in v0.21 and was last available in v0.24.",
    ),
    (
        "begin { @x[«hist(1)»] = 1; }",
        "hist() must be assigned directly to a map",
    ),
    (
        "begin { print($x «=» 1); }",
        "syntax: expected ')'",
    ),
    (
        "macro a() { b() } macro b() { «a()» } begin { a() }",
        "Recursive macro call detected. Call chain: a > b > a",
    ),
    (
        "macro m($x) { $x } begin { «m(1)» }",
        "Call to m() has arguments that do not match any definition.",
    ),
    (
        "macro m(@x) { print(@x) } begin { «m(1)» }",
        "Call to m() has arguments that do not match any definition.",
    ),
    (
        "macro m() { «@x» = 1 } begin { m() }",
        "Unhygienic access to map: @x. Maps must be passed into the macro as arguments.",
    ),
    (
        "macro m() { «return;» } begin { m() }",
        "'return' statement is not allowed in a macro",
    ),
    (
        "macro m(x) { x } «macro m»(y) { y } begin { }",
        "Redefinition of macro: m",
    ),
    (
        "macro m(x, «x») { x } begin { }",
        "Ident for macro argument has already been used: x",
    ),
    (
        "macro m(x) { x } begin { «m()» }",
        "Call to m() has arguments that do not match any definition.",
    ),
    (
        "config = { «nosuch = 1» } begin { }",
        "nosuch: not a known configuration option",
    ),
    (
        'config = { «max_map_keys = "many"» } begin { }',
        "max_map_keys: expecting a number, got many",
    ),
    (
        "config = { «stack_mode = odd» } begin { }",
        "stack_mode: Invalid value for stack_mode: valid values are bpftrace, "
        "perf, raw, and build_id.",
    ),
    (
        "«let @x = nosuch(10);» begin { @x = 1; }",
        "Invalid bpf map type: nosuch",
    ),
    (
        "let @x = lruhash(10); begin { «@x» = count(); }",
        "Incompatible map types. Type from declaration: lruhash. Type from "
        "value/key type: percpuhash",
    ),
    (
        "kprobe:f { $x = «kaddr(1)»; }",
        "kaddr() expects a string literal (int provided)",
    ),
    (
        "«nosuch:f» { }",
        "Invalid probe type: nosuch",
    ),
    (
        "«interval:s» { }",
        "Invalid rate of interval probe: invalid integer: s",
    ),
    (
        "«interval:fortnight:1» { }",
        "fortnight is not an accepted unit of time",
    ),
    (
        "interval:s:1 / pid «{» }",
        "syntax: expected '/' to close predicate",
    ),
    (
        '«import "mylib"»; begin { }',
        "files cannot be imported here",
    ),
    (
        'begin { «bswap("a")»; }',
        "bswap() only supports integer arguments (string provided)",
    ),
    (
        'begin { «path("x")»; }',
        "path() only supports pointer or C type argument (string provided)",
    ),
    (
        'begin { «join("x")»; }',
        "join() only supports int or pointer arguments (string provided)",
    ),
    (
        "begin { «cgroupid(1)»; }",
        "cgroupid() expects a string literal (int provided)",
    ),
    (
        "begin { @x = 1; «find(@x, 1, $y)»; }",
        "call to find expects a map with explicit keys (non-scalar map)",
    ),
    (
        "begin { «is_scalar(1)»; }",
        "is_scalar() expects a map for the first argument",
    ),
)
"""Scripts with the place of the error marked, and its text."""


def test_there_are_a_hundred() -> None:
    assert len(WRONG) >= 100
    assert len(dict(WRONG)) == len(WRONG)


def test_each_has_one_error_at_its_place() -> None:
    for marked, text in WRONG:
        before, _, rest = marked.partition("«")
        place, _, behind = rest.partition("»")
        script = before + place + behind
        with pytest.raises(WrongScriptError) as raised:
            checked(script)
        (remark,) = raised.value.remarks
        assert (remark.text, remark.span.start, remark.span.end) == (
            text,
            len(before),
            len(before + place),
        ), script


def test_an_error_is_shown_with_its_line_and_a_mark() -> None:
    with pytest.raises(WrongScriptError) as raised:
        checked("begin {\n  $x = 1;\n  print(fooo);\n}")
    assert str(raised.value).splitlines() == [
        "stdin:3:9-13: ERROR: Unknown identifier: 'fooo'",
        "  print(fooo);",
        "        ~~~~",
    ]


def test_errors_come_in_the_order_of_the_text() -> None:
    with pytest.raises(WrongScriptError) as raised:
        checked("begin { print(one); print(two); print(three); }")
    assert [remark.text for remark in raised.value.remarks] == [
        "Unknown identifier: 'one'",
        "Unknown identifier: 'two'",
        "Unknown identifier: 'three'",
    ]


def test_a_script_that_is_all_wrong_has_a_few_errors() -> None:
    with pytest.raises(WrongScriptError) as raised:
        checked("begin { " + "".join([f"print(n{index}); " for index in range(500)]) + "}")
    assert len(raised.value.remarks) == 20
