"""Verdicts on the places of kernel images, as they are shown."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final

from engine.cli import console
from engine.escaping import escaped, json_text

if TYPE_CHECKING:
    from engine.session.headless.kernel_answers import AskedRow, KernelAsked
    from engine.session.headless.kernel_checks import KernelChecked, KernelRow

_REASONS: Final = 20
_LARGE: Final = 1 << 32
"""Numbers from here on are addresses."""


def show_checked(result: "KernelChecked", *, summary: bool, as_json: bool) -> int:
    """Print verdicts and give the exit code.

    Args:
        result: the verdicts.
        summary: count them instead.
        as_json: as objects.

    Returns:
        0 if all definitions are accepted, 1 if one is refused, 2 if one has an error.
    """
    if summary:
        _show_summary(result, as_json=as_json)
    elif as_json:
        _show_json(result)
    else:
        console.write(_lines(result.asked).decode())
        for text in result.rest.worked(_lines):
            console.write(text.decode())
    return _exit_code(result.asked, as_json=as_json)


def show_asked(asked: "KernelAsked", *, summary: bool, as_json: bool) -> int:
    """Print verdicts with the kernel's own answers, and give the exit code.

    Args:
        asked: the verdicts and the answers.
        summary: count them instead.
        as_json: as objects.

    Returns:
        As `show_checked`, by our verdicts.
    """
    rows = asked.rows
    if summary:
        _show_agreement(rows, as_json=as_json)
    elif as_json:
        objects = ",\n".join(json_text(_asked_json(each)) for each in rows)
        console.write(f"[\n{objects}\n]\n" if rows else "[]\n")
    else:
        for each in rows:
            console.write(_lines((each.row,)).decode())
            console.put_lines([escaped(line) for line in _answer_lines(each)])
    return _exit_code([each.row for each in rows], as_json=as_json)


def _exit_code(asked: "Sequence[KernelRow]", *, as_json: bool) -> int:
    if any(row.error and row.column is not None and row.address is None for row in asked):
        return 1 if as_json else 2
    return int(any(not row.ok for row in asked))


def _answer_lines(asked: "AskedRow") -> "Iterator[str]":
    """The kernel's answer, and what of it differs."""
    answer, differences = asked.answer, asked.differences
    said = "accepted" + "".join(f" [{flag}]" for flag in answer.flags or ())
    if not answer.accepted:
        said = f"rejected ({answer.errno})" + (f": {answer.error}" if answer.error else "")
    if not differences:
        yield f"    kernel: {said}"
        return
    yield f"    kernel DIFFERS: {said}"
    if "accepted" in differences and answer.command:
        yield f"      Command: {answer.command}"
        if answer.column is not None:
            yield f"               {' ' * answer.column}^"
    for name in differences:
        if name != "accepted":
            ours, theirs = _first_difference(getattr(asked.row, name), getattr(answer, name))
            yield f"      {name}: {theirs}; ours: {ours}"


def _first_difference(ours: object, theirs: object) -> tuple[str, str]:
    """Two values as texts; of several lines the first ones that differ."""
    if isinstance(ours, str) and isinstance(theirs, str):
        pairs = zip_longest(ours.split("\n"), theirs.split("\n"), fillvalue="")
        found = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
        return found[0].strip() or "nothing", found[1].strip() or "nothing"
    if isinstance(ours, int) and isinstance(theirs, int) and ours > _LARGE:
        return hex(ours), hex(theirs)
    return str(ours), str(theirs)


def _asked_json(asked: "AskedRow") -> dict[str, Any]:
    answer = asked.answer
    kernel = {
        "accepted": answer.accepted,
        "errno": answer.errno or None,
        "error": answer.error or None,
        "command": answer.command or None,
        "column": answer.column,
        "address": None if answer.address is None else f"{answer.address:#x}",
        "flags": None if answer.flags is None else list(answer.flags),
        "optimized": answer.optimized,
        "ftrace": answer.ftrace,
        "shown": answer.shown or None,
        "format": answer.format or None,
    }
    agreed = {"agrees": not asked.differences, "differences": list(asked.differences)}
    return {**_as_json(asked.row), "kernel": kernel, **agreed}


def _show_agreement(rows: "Sequence[AskedRow]", *, as_json: bool) -> None:
    found = Counter(name for each in rows for name in each.differences)
    accepted = sum(1 for each in rows if each.answer.accepted)
    differing = sum(1 for each in rows if each.differences)
    if as_json:
        counts = {"definitions": len(rows), "accepted": accepted, "differing": differing}
        console.write(json_text({**counts, "differences": dict(found.most_common())}) + "\n")
        return
    console.put(
        f"{len(rows)} definitions: the kernel accepts {accepted}, and differs in {differing}"
    )
    for name, count in found.most_common():
        console.put(f"{count:>9} {name}")


def _lines(rows: "Iterable[KernelRow]") -> bytes:
    """A line for each row, with the error in front of it where a definition has one."""
    found: list[str] = []
    for row in rows:
        if row.line is not None and row.error:
            found.append(f"rejected ({row.errno}): {row.error}")
            found.append(f"  Command: {row.command or row.line}")
            if row.column is not None:
                found.append(f"           {' ' * row.column}^")
        if row.address is None:
            if not row.error and row.line:
                why = f"rejected ({row.errno}): {row.reason}" if row.errno else row.reason
                found.append(f"{row.line}: {why}")
            continue
        outcome = f"{row.technique}: {row.reason}"
        if row.errno:
            outcome = f"rejected {row.reason} ({row.errno})"
        found.append(f"{row.address:#x} {row.symbol}+{row.offset:#x} {outcome}")
    return "".join([f"{escaped(line)}\n" for line in found]).encode()


def _show_json(result: "KernelChecked") -> None:
    separator = "["
    for text in chain((_objects(result.asked),), result.rest.worked(_objects)):
        if text:
            console.write(separator + text.decode()[1:])
            separator = ","
    console.write("[]\n" if separator == "[" else "\n]\n")


def _objects(rows: "Iterable[KernelRow]") -> bytes:
    """An object for each row, on a line of its own, a comma in front of each."""
    return "".join([f",\n{json_text(_as_json(row))}" for row in rows]).encode()


def _as_json(row: "KernelRow") -> dict[str, Any]:
    shown: dict[str, Any] = {} if row.line is None else {"definition": row.line}
    shown |= {
        "address": None if row.address is None else f"{row.address:#x}",
        "symbol": row.symbol or None,
        "offset": row.offset,
        "era": row.era,
        "verdict": "ok" if row.ok else "rejected",
        "technique": row.technique,
        "how": None,
        "ftrace": row.ftrace,
        "optimized": row.optimized,
        "reason": row.reason,
        "rule": row.rule or None,
        "culprit": None if row.culprit is None else f"{row.culprit:#x}",
        "errno": row.errno or None,
        "register_kprobe": row.registered or None,
        "rules": [{"rule": row.rule, "ok": False, "detail": row.reason}] if row.rule else [],
        "lint": [],
    }
    if row.line is not None:
        shown |= {
            "error": row.error or None,
            "command": row.command or None,
            "column": row.column,
            "shown": row.shown or None,
            "format": row.format or None,
        }
    return shown


def _show_summary(result: "KernelChecked", *, as_json: bool) -> None:
    techniques: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    counts = Counter((row.technique, row.rule) for row in result.asked)
    for (technique, rule), count in (counts + result.rest.counts()).items():
        techniques[technique] += count
        if rule:
            reasons[technique, rule] += count
    total = sum(techniques.values())
    if as_json:
        ranked = [
            {"outcome": outcome, "rule": rule, "count": count}
            for (outcome, rule), count in reasons.most_common()
        ]
        summary = {"places": total, "techniques": techniques, "reasons": ranked}
        console.write(json_text(summary) + "\n")
        return
    console.put(f"{total} places")
    for name, count in techniques.most_common():
        console.put(f"{count:>9} {name} ({count / total:.2%})")
    for (outcome, rule), count in reasons.most_common(_REASONS):
        console.put(f"{count:>9} {outcome}: {rule}")
