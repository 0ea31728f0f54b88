"""Settings of scripts and of the environment."""

import pytest
from scriptkit import checked

from engine.trace.bpftrace.config import Config, SettingError
from engine.trace.bpftrace.text import WrongScriptError


def test_defaults() -> None:
    assert checked("begin { }").config == Config()


def test_a_script_sets_them_and_the_environment_wins() -> None:
    text = (
        'config = { max_map_keys = 7; BPFTRACE_STACK_MODE = perf; str_trunc_trailer = "...";'
        " print_maps_on_exit = false; unstable_typeinfo = enable } begin { }"
    )
    config = checked(text, environment={"BPFTRACE_MAX_MAP_KEYS": "0x10", "HOME": "/"}).config
    assert (config.max_map_keys, config.stack_mode, config.str_trunc_trailer) == (
        16,
        "perf",
        "...",
    )
    assert not config.print_maps_on_exit
    assert dict(config.unstable)["unstable_typeinfo"] == "enable"


def test_wrong_settings() -> None:
    for setting, text in (
        ("nosuch = 1", "nosuch: not a known configuration option"),
        ('vmlinux = "a"', "vmlinux: can only be set as an environment variable"),
        ('max_strlen = "a"', "max_strlen: expecting a number, got a"),
        ("max_map_keys = 0", "max_map_keys: expecting a number from 1 to 67108864, got 0"),
        ('cpp_demangle = "maybe"', "cpp_demangle: Invalid bool value"),
        ('missing_probes = "never"', "missing_probes: Invalid value for missing_probes"),
        ('license = "Potato"', "Invalid value for license. Found: Potato."),
    ):
        with pytest.raises(WrongScriptError) as raised:
            checked(f"config = {{ {setting} }} begin {{ }}")
        assert text in str(raised.value)
    with pytest.raises(SettingError, match=r"max_strlen: expecting a number, got many"):
        checked("begin { }", environment={"BPFTRACE_MAX_STRLEN": "many"})


def test_settings_of_bpf_are_told_to_have_no_effect() -> None:
    for setting, text in (
        ("log_size = 5", "log_size has no effect here: there is no verifier"),
        ("unstable_import = enable", "unstable_import is deprecated and has no effect"),
        ("strlen = 64", "strlen has been renamed, please use max_strlen"),
    ):
        script = checked(f"config = {{ {setting} }} begin {{ }}")
        assert [remark.text for remark in script.warnings] == [text]


def test_what_may_change_is_refused_or_warned_of() -> None:
    with pytest.raises(WrongScriptError, match=r"typeinfo feature is not enabled by default"):
        checked("begin { print(typeinfo(1).full_type); }")
    assert checked("config = { unstable_typeinfo = enable } begin { print(typeinfo(1)); }")
