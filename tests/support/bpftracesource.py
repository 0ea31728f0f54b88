"""The output of a checkout of bpftrace, compiled: what prints values and fills in formats there.

Only the files that do that are compiled, with headers of our own for the rest; no bpftrace, LLVM
or BPF is needed. Values go in as words: `i -3`, `s 6162`, `t 2 i 1 i 2`.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

from compiled import tool

from engine.trace.bpftrace import types as kinds
from engine.trace.bpftrace.maps import ScriptMap
from engine.trace.bpftrace.printing import series_of
from engine.trace.bpftrace.sorting import rows_of

_FILES: Final = (
    *("format_string.h", "format_string.cpp", "output/output.h", "output/output.cpp"),
    *("output/text.h", "output/text.cpp", "output/json.h", "output/json.cpp", "util/time.h"),
    *("util/time.cpp", "util/strings.h", "util/strings.cpp", "util/gfp_flags.h"),
    "util/gfp_flags.cpp",
)
_STUBS: Final = {
    "bpf/bpf.h": "#pragma once\n#include <cerrno>\n#include <cstring>\n",
    "struct.h": "#pragma once\n",
    "util/exceptions.h": "#pragma once\n",
    "cereal/access.hpp": "#pragma once\n",
    "log.h": """#pragma once
#include <iostream>
#include <sstream>
#include <vector>
#define LOG(...) std::cerr
""",
    "required_resources.h": """#pragma once
#include <chrono>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include <cstdint>
enum bpf_func_id { BPF_FUNC_map_update_elem, BPF_FUNC_map_delete_elem, BPF_FUNC_map_lookup_elem };
namespace std::chrono {
inline ostream &operator<<(ostream &out, const time_point<system_clock> &at) {
  auto whole = floor<seconds>(at);
  time_t seconds = system_clock::to_time_t(whole);
  tm parts;
  gmtime_r(&seconds, &parts);
  return out << put_time(&parts, "%Y-%m-%d %H:%M:%S") << "." << setw(9) << setfill('0')
             << duration_cast<nanoseconds>(at - whole).count();
}
inline ostream &operator<<(ostream &out, const duration<uint64_t, nano> &d) {
  return out << d.count() << "ns";
}
}
namespace bpftrace {
enum class PrintfSeverity { NONE, WARNING, ERROR };
enum class RuntimeErrorId { OTHER, HELPER_ERROR };
struct SourceLocation {
  std::string filename; size_t line; size_t column;
  std::string source_location; std::vector<std::string> source_context;
};
struct SourceInfo { std::vector<SourceLocation> locations; };
struct RuntimeErrorInfo : SourceInfo { RuntimeErrorId error_id; bpf_func_id func_id; };
inline std::ostream &operator<<(std::ostream &out, const RuntimeErrorInfo &) { return out; }
}
""",
    "types.h": """#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>
#include "required_resources.h"
namespace cereal { class access; }
namespace llvm {
struct raw_ostream { std::ostream &out; };
template <typename T> raw_ostream &operator<<(raw_ostream &o, const T &v) { o.out << v; return o; }
}
namespace bpftrace {
template <typename T> struct ErrorInfo {
  virtual void log(llvm::raw_ostream &) const = 0;
  virtual ~ErrorInfo() = default;
};
struct Failure { std::string text; };
inline std::ostream &operator<<(std::ostream &o, const Failure &f) { return o << f.text; }
struct Nothing {};
template <typename T = Nothing> struct Result {
  std::optional<T> value; Failure failure;
  Result(T v) : value(std::move(v)) {}
  Result(Failure f) : failure(std::move(f)) {}
  explicit operator bool() const { return value.has_value(); }
  T &operator*() { return *value; }
  Failure takeError() { return failure; }
};
inline Result<> OK() { return Nothing{}; }
template <typename E, typename... A> Failure make_error(A &&...a) {
  E error(std::forward<A>(a)...);
  std::ostringstream out; llvm::raw_ostream raw{ out };
  error.log(raw);
  return Failure{ out.str() };
}
enum class Type { none, voidtype, boolean, integer, pointer, buffer, string, other };
struct SizedType {
  Type type; std::string name;
  Type GetTy() const { return type; }
  bool IsNoneTy() const { return type == Type::none; }
  bool IsVoidTy() const { return type == Type::voidtype; }
};
inline std::string typestr(const SizedType &type) { return type.name; }
}
""",
}
_MAIN: Final = """
#include <cassert>
#include <sstream>
#include "format_string.h"
#include "output/json.h"
#include "output/text.h"
using namespace bpftrace;
using output::Primitive;
using output::Value;
namespace bpftrace {
@HISTOGRAMS@
}
static std::istringstream in;
static std::string word() { std::string w; in >> w; return w; }
template <typename T = long long> static T number() { T n; in >> n; return n; }
static std::string text() {
  std::string hex = word(), out;
  for (size_t i = 1; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}
static Primitive primitive() {
  switch (word()[0]) {
    case 'i': return number<int64_t>();
    case 'u': return number<uint64_t>();
    case 'b': return number() != 0;
    case 's': return text();
    case 'y': { auto name = text(); return Primitive::Symbolic(name, number<uint64_t>()); }
    case 'B': {
      auto data = text();
      return Primitive::Buffer{ std::vector<char>(data.begin(), data.end()) };
    }
    case 't': {
      Primitive::Tuple v; auto n = number();
      while (n--) v.values.push_back(primitive());
      return v;
    }
    case 'a': {
      Primitive::Array v; auto n = number();
      while (n--) v.values.push_back(primitive());
      return v;
    }
    case 'r': {
      Primitive::Record v; auto n = number();
      while (n--) { auto name = text(); v.fields.emplace_back(name, primitive()); }
      return v;
    }
    default: return std::monostate{};
  }
}
static Value value() {
  switch (word()[0]) {
    case 'P': return primitive();
    case 'M': {
      Value::OrderedMap m; auto n = number();
      while (n--) { auto key = primitive(); m.values.emplace_back(key, value()); }
      return m;
    }
    case 'S': {
      auto inner = value();
      if (auto *p = std::get_if<Primitive>(&inner.variant)) return Value::Stats(std::move(*p));
      return Value::Stats(std::move(std::get<Value::OrderedMap>(inner.variant)));
    }
    case 'H': {
      auto bits = number(), div = number(), n = number();
      std::vector<uint64_t> counts(65 * 32, 0);
      while (n--) { auto at = number(); counts[at] = number(); }
      return build_histogram(counts, div, bits);
    }
    case 'L': {
      auto least = number(), most = number(), step = number(), n = number();
      std::vector<uint64_t> counts(1002, 0);
      while (n--) { auto at = number(); counts[at] = number(); }
      return build_linear_histogram(counts, least, most, step);
    }
    default: {
      Value::TimeSeries series; auto n = number();
      while (n--) {
        Primitive::Timestamp at;
        at += std::chrono::nanoseconds(number());
        series.values.emplace_back(at, primitive());
      }
      return series;
    }
  }
}
int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    in.clear();
    in.str(line);
    std::ostringstream out;
    auto what = word();
    if (what == "format") {
      FormatString format(text());
      std::vector<Primitive> values; auto n = number();
      while (n--) values.push_back(primitive());
      out << format.format(values);
    } else if (what == "check") {
      FormatString format(text());
      std::vector<SizedType> types; auto n = number();
      while (n--) { auto kind = number(); types.push_back({ static_cast<Type>(kind), text() }); }
      auto ok = format.check(types);
      if (!ok) out << ok.takeError();
    } else {
      output::TextOutput plain(out, out);
      output::JsonOutput json(out);
      output::Output &to = what == "text" ? static_cast<output::Output &>(plain) : json;
      auto name = text();
      if (name.empty()) to.value(value()); else to.map(name, value());
    }
    auto done = out.str();
    static const char digits[] = "0123456789abcdef";
    std::string hex;
    for (unsigned char c : done) { hex += digits[c >> 4]; hex += digits[c & 15]; }
    std::cout << hex << "\\n";
  }
}
"""
_KINDS: Final = ("none", "voidtype", "boolean", "integer", "pointer", "buffer", "string", "other")


def built(source: Path, folder: Path) -> "BpftraceSource":
    """Compile the files of a checkout in a folder."""
    for name in _FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / "src" / name, folder / name)
    for name, content in _STUBS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    found = (source / "src/types_format.cpp").read_text()
    start = found.index("static output::Primitive hist_index_label")
    end = found.index("template <typename T>\nvoid sort_by_key_type")
    (folder / "main.cpp").write_text(_MAIN.replace("@HISTOGRAMS@", found[start:end]))
    files = [folder / name for name in _FILES if name.endswith(".cpp")]
    program = folder / "shown"
    options = ["-std=c++20", "-I", str(folder), "-include", "optional", "-o", str(program)]
    sources = [str(file) for file in (*files, folder / "main.cpp")]
    subprocess.run([tool("g++"), *options, *sources], check=True)
    return BpftraceSource(program)


class BpftraceSource:
    """The compiled files; all requests of a test are given in one go."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def answers(self, requests: list[str]) -> list[bytes]:
        """What is printed for each request."""
        done = subprocess.run(
            [self._program],
            input="\n".join([*requests, ""]).encode(),
            capture_output=True,
            check=True,
            env={"TZ": "UTC"},
        )
        return [bytes.fromhex(line) for line in done.stdout.decode().splitlines()]


def words(data: bytes | str) -> str:
    """A text as a word of a request."""
    return f"={data.encode().hex() if isinstance(data, str) else data.hex()}."


def value_words(kind: kinds.Type, value: Any, cut: bytes = b"..") -> str:
    """A value as words of a request."""
    match kind:
        case kinds.Integer():
            return f"{'i' if kind.signed else 'u'} {value}"
        case kinds.Boolean():
            return f"b {int(value)}"
        case kinds.TextType():
            return f"s {words(value + cut if len(value) >= kind.size else value)}"
        case kinds.BufferType():
            return f"B {words(value)}"
        case kinds.Pointer():
            return f"y {words(f'{value:#x}')} {value}"
        case kinds.Enumeration():
            number = value & (1 << kind.integer.bits) - 1
            return f"y {words(dict(kind.names).get(value) or str(number))} {number}"
        case kinds.Tuple():
            parts = zip(kind.elements, value, strict=True)
            inner = [value_words(one, part, cut) for one, part in parts]
            return " ".join((f"t {len(inner)}", *inner))
        case kinds.Array():
            inner = [value_words(kind.element, part, cut) for part in value]
            return " ".join((f"a {len(inner)}", *inner))
        case kinds.Record():
            fields = zip(kind.fields, value, strict=True)
            inner = [
                f"{words(name)} {value_words(one, part, cut)}" for (name, one), part in fields
            ]
            return " ".join((f"r {len(inner)}", *inner))
        case _:
            return "n"


def map_words(of: ScriptMap, top: int = 0, div: int = 1) -> str:
    """A map as words of a request, in our order and with our averages."""
    rows = rows_of(of, top)
    cells = [_cell_words(of, cell, rows, div) for _, cell in rows]
    averaged = of.aggregate is not None and of.aggregate.kind in ("avg", "stats")
    stats = "S " if averaged else ""
    if of.key is None and cells:
        return stats + cells[0]
    assert of.key is not None or not cells
    keys = [value_words(of.key, key) for key, _ in rows if of.key is not None]
    items = [f"{key} {cell}" for key, cell in zip(keys, cells, strict=True)]
    return stats + " ".join((f"M {len(rows)}", *items))


def _cell_words(of: ScriptMap, cell: Any, rows: list[tuple[Any, Any]], div: int) -> str:
    aggregate = of.aggregate
    match aggregate:
        case None:
            return f"P {value_words(of.value, cell)}"
        case kinds.Aggregate(kind="hist" | "lhist"):
            buckets = " ".join(f"{bucket} {count}" for bucket, count in cell.items())
            if aggregate.kind == "hist":
                return f"H {aggregate.parameters[0]} {div} {len(cell)} {buckets}"
            return f"L {' '.join(map(str, aggregate.parameters))} {len(cell)} {buckets}"
        case kinds.Aggregate(kind="tseries"):
            points = series_of(aggregate, rows)(cell).points
            sign = "i" if aggregate.signed else "u"
            shown = [f"{at} n" if v is None else f"{at} {sign} {v}" for at, v in points]
            return " ".join((f"T {len(shown)}", *shown))
        case kinds.Aggregate(kind="avg" | "stats"):
            count, total = cell
            average = int(total / count) if count else 0
            number = "i" if aggregate.signed else "u"
            if aggregate.kind == "avg":
                return f"P {number} {average}"
            fields = (("count", count), ("average", average), ("total", total))
            inner = " ".join(f"{words(name)} {number} {value}" for name, value in fields)
            return f"P r 3 {inner}"
        case _:
            signed = aggregate.signed and aggregate.kind != "count"
            return f"P {'i' if signed else 'u'} {cell or 0}"


def type_words(kind: kinds.Type, name: str) -> str:
    """A type as words of a request."""
    found = {
        kinds.Integer: "integer",
        kinds.Enumeration: "integer",
        kinds.Boolean: "boolean",
        kinds.Pointer: "pointer",
        kinds.BufferType: "buffer",
        kinds.TextType: "string",
        kinds.Void: "voidtype",
    }.get(type(kind), "other")
    return f"{_KINDS.index(found)} {words(name)}"
