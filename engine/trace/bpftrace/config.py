"""The settings of a script: its `config = { ... }` block and `BPFTRACE_*` of the environment.

Names, defaults and values are those of bpftrace 0.26 (docs/language.md, "Config Variables"). What
the environment says wins. A setting of BPF itself, which has no effect on an emulated guest, is
said to have none where it stands.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import KprobeTuiError
from engine.trace.bpftrace.text import ScriptRemarks
from engine.trace.bpftrace.tree import ConfigSetting

_Value = int | str | bool
_PREFIX = "bpftrace_"


class Config(Struct, frozen=True):
    """Settings with their values.

    Attributes:
        cpp_demangle: C++ names in stacks are shown as they are written.
        print_maps_on_exit: maps that are not empty are printed at the end.
        max_cat_bytes: how much of a file `cat()` prints.
        max_map_keys: entries of a map.
        max_probes: places of a script.
        max_strlen: bytes of a string that is read.
        str_trunc_trailer: what is printed behind a string that was cut.
        missing_probes: what is done about a probe whose place is not there.
        stack_mode: how stacks are shown.
        show_debug_info: stacks show files and lines.
        unstable: what is done about uses of features that may change, by the feature.
    """

    cpp_demangle: bool = True
    print_maps_on_exit: bool = True
    max_cat_bytes: int = 10240
    max_map_keys: int = 4096
    max_probes: int = 1024
    max_strlen: int = 1024
    str_trunc_trailer: str = ".."
    missing_probes: Literal["error", "warn", "ignore"] = "error"
    stack_mode: Literal["bpftrace", "perf", "raw", "build_id"] = "bpftrace"
    show_debug_info: bool = True
    unstable: tuple[tuple[str, str], ...] = (
        ("unstable_import_statement", "error"),
        ("unstable_tseries", "warn"),
        ("unstable_typeinfo", "error"),
        ("unstable_dw_ustack", "warn"),
    )


class SettingError(KprobeTuiError):
    """A setting is not known, or has a value that it cannot have."""


def _number(least: int, most: int) -> Callable[[str, _Value], int]:
    def parse(name: str, value: _Value) -> int:
        if isinstance(value, str):
            try:
                value = int(value, 0)
            except ValueError:
                raise SettingError(f"{name}: expecting a number, got {value}") from None
        if not least <= value <= most:
            raise SettingError(f"{name}: expecting a number from {least} to {most}, got {value}")
        return int(value)

    return parse


def _boolean(name: str, value: _Value) -> bool:
    if not isinstance(value, str):
        return bool(value)
    word = value.lower()
    if word in {"1", "true", "on", "yes"}:
        return True
    if word in {"0", "false", "off", "no"}:
        return False
    raise SettingError(f"{name}: Invalid bool value: valid values are true, false, 1 or 0.")


def _text(_name: str, value: _Value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _one_of(text: str, *words: str) -> Callable[[str, _Value], str]:
    def parse(name: str, value: _Value) -> str:
        word = str(value).lower()
        if word not in words:
            raise SettingError(f"{name}: {text}")
        return word

    return parse


def _unstable(name: str, value: _Value) -> str:
    word = str(value).lower()
    for meaning, words in (
        ("enable", {"enable", "1", "true", "on", "yes"}),
        ("warn", {"warn"}),
        ("error", {"error", "0", "false", "off", "no"}),
    ):
        if word in words:
            return meaning
    raise SettingError(
        f"{name}: Invalid value for unstable config: valid values are enable, warn, and error."
    )


_PARSERS: Final[Mapping[str, Callable[[str, _Value], _Value]]] = {
    "cpp_demangle": _boolean,
    "print_maps_on_exit": _boolean,
    "max_cat_bytes": _number(1, 1 << 30),
    "max_map_keys": _number(1, 1 << 26),
    "max_probes": _number(1, 1 << 20),
    "max_strlen": _number(1, 1 << 20),
    "str_trunc_trailer": _text,
    "missing_probes": _one_of(
        "Invalid value for missing_probes: valid values are ignore, warn, and error.",
        "ignore",
        "warn",
        "error",
    ),
    "stack_mode": _one_of(
        "Invalid value for stack_mode: valid values are bpftrace, perf, raw, and build_id.",
        "bpftrace",
        "perf",
        "raw",
        "build_id",
    ),
    "show_debug_info": _boolean,
}

_RENAMED: Final = {
    "strlen": "max_strlen",
    "no_cpp_demangle": "cpp_demangle",
    "cat_bytes_max": "max_cat_bytes",
    "map_keys_max": "max_map_keys",
}
_DEPRECATED: Final = frozenset(
    (
        "symbol_source",
        "max_type_res_iterations",
        "unstable_addr",
        "unstable_import",
        "unstable_macro",
        "unstable_map_decl",
    )
)
_ONLY_ENVIRONMENT: Final = frozenset(("btf", "kernel_build", "kernel_source", "vmlinux"))
_WITHOUT_EFFECT: Final = {
    "cache_user_symbols": "names of addresses are those of the moment of a hit",
    "lazy_symbolication": "names of addresses are those of the moment of a hit",
    "license": "no program is loaded into a kernel",
    "log_size": "there is no verifier",
    "max_bpf_progs": "there are no BPF programs",
    "on_stack_limit": "there is no BPF stack",
    "perf_rb_pages": "there is no buffer that could overrun",
    "use_blazesym": "names of addresses are found by kprobe-tui itself",
}


_LICENSES: Final = (
    *("Dual MIT/GPL", "Dual BSD/GPL", "Dual MPL/GPL"),
    *("GPL and additional rights", "GPL v2", "GPL"),
)


def _with(config: Config, written: str, value: _Value) -> Config:
    name = written.lower().removeprefix(_PREFIX)
    if name.startswith("unstable_") and name in dict(config.unstable):
        meaning = _unstable(written, value)
        return replace(config, unstable=tuple((dict(config.unstable) | {name: meaning}).items()))
    parser = _PARSERS.get(name)
    if parser is None:
        if name in _ONLY_ENVIRONMENT:
            raise SettingError(f"{written}: can only be set as an environment variable")
        raise SettingError(f"{written}: not a known configuration option")
    return replace(config, **{name: parser(written, value)})


def configured(
    settings: tuple[ConfigSetting, ...], environment: Mapping[str, str], remarks: ScriptRemarks
) -> Config:
    """The settings of a script and of the environment, over the defaults.

    Raises:
        SettingError: the environment has a value that cannot be.
    """
    config = Config()
    for setting in settings:
        name = setting.name.lower().removeprefix(_PREFIX)
        if name in _DEPRECATED:
            remarks.warning(f"{setting.name} is deprecated and has no effect", setting.span)
            continue
        if name == "license" and setting.value not in _LICENSES:
            remarks.error(
                f"Invalid value for license. Found: {setting.value}. Valid values: "
                f"{', '.join(_LICENSES)}.",
                setting.span,
            )
        elif name in _WITHOUT_EFFECT:
            remarks.warning(
                f"{setting.name} has no effect here: {_WITHOUT_EFFECT[name]}", setting.span
            )
        if name in _WITHOUT_EFFECT:
            continue
        new = _RENAMED.get(name)
        if new is not None:
            remarks.warning(f"{setting.name} has been renamed, please use {new}", setting.span)
        try:
            config = _with(config, new or setting.name, setting.value)
        except SettingError as error:
            remarks.error(str(error), setting.span)
    for name in (*_PARSERS, *dict(config.unstable)):
        value = environment.get(_PREFIX.upper() + name.upper())
        if value is not None:
            config = _with(config, name, value)
    return config
