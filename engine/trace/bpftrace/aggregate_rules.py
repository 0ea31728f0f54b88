"""Functions that maps gather by: `count()`, `sum(n)`, `hist(n)` and so on.

Limits and texts are those of bpftrace 0.26 (src/ast/passes/types/pre_type_check.cpp).
"""

from collections.abc import Mapping
from typing import Final

from engine.trace.bpftrace.function_use import FunctionUse
from engine.trace.bpftrace.type_rules import (
    integer_of,
    type_name,
)
from engine.trace.bpftrace.types import (
    AGGREGATES,
    Aggregate,
    Type,
)


def _number_argument(site: FunctionUse) -> bool:
    kind = site.kind(0)
    if kind is not None and integer_of(kind) is None:
        site.error(f"{site.name}() only supports integer arguments ({type_name(kind)} provided)")
    return integer_of(kind) is not None


def count_type(_site: FunctionUse) -> Type | None:
    """`count()`."""
    return Aggregate("count", signed=False)


def number_aggregate_type(site: FunctionUse) -> Type | None:
    """`sum(n)`, `min(n)`, `max(n)`, `avg(n)`, `stats(n)`."""
    number = integer_of(site.kind(0))
    if not _number_argument(site) or number is None:
        return None
    return Aggregate(_AGGREGATES[site.name].kind, number.signed)


_AGGREGATES: Final[Mapping[str, Aggregate]] = {
    "sum": Aggregate("sum"),
    "min": Aggregate("min"),
    "max": Aggregate("max"),
    "avg": Aggregate("avg"),
    "stats": Aggregate("stats"),
}


def histogram_type(site: FunctionUse) -> Type | None:
    """`hist(n)`, `hist(n, bits)`."""
    bits = site.number(1) if len(site.arguments) == 2 else 0
    if bits is None:
        site.error(f"{site.name}() expects a int literal ({site.given(1)} provided)")
        return None
    if not 0 <= bits <= 5:
        site.error(f"{site.name}: bits {bits} must be 0..5")
        return None
    number = integer_of(site.kind(0))
    if not _number_argument(site) or number is None:
        return None
    return Aggregate("hist", parameters=(bits,))


def linear_histogram_type(site: FunctionUse) -> Type | None:
    """`lhist(n, least, most, step)`."""
    least, most, step = site.number(1), site.number(2), site.number(3)
    for value, name in ((least, "min"), (most, "max")):
        if value is None or value < 0:
            site.error(f"{site.name}: invalid {name} value (must be non-negative literal)")
            return None
    if step is None or least is None or most is None or step < 0:
        site.error(f"{site.name}: invalid step value")
        return None
    wrong = ""
    if step == 0:
        wrong = "lhist() step must be >= 1 (0 provided)"
    elif (most - least) // step > 1000:
        wrong = f"lhist() too many buckets, must be <= 1000 (would need {(most - least) // step})"
    elif least > most:
        wrong = f"lhist() min must be less than max (provided min {least} and max {most})"
    elif most - least < step:
        wrong = (
            "lhist() step is too large for the given range (provided step "
            f"{step} for range {most - least})"
        )
    if wrong:
        site.error(wrong)
        return None
    if not _number_argument(site):
        return None
    return Aggregate("lhist", parameters=(least, most, step))


_SERIES: Final = ("avg", "max", "min", "sum")


def time_series_type(site: FunctionUse) -> Type | None:
    """`tseries(n, interval, count)`, `tseries(n, interval, count, "avg")`."""
    interval, count = site.number(1), site.number(2)
    wrong = ""
    if interval is None or interval < 0:
        wrong = "tseries: invalid interval_ns value (must be non-negative literal)"
    elif count is None or count < 0:
        wrong = "tseries: invalid num_intervals value (must be non-negative literal)"
    elif interval == 0:
        wrong = "tseries() interval_ns must be >= 1 (0 provided)"
    elif count == 0:
        wrong = "tseries() num_intervals must be >= 1 (0 provided)"
    elif count > 1_000_000:
        wrong = f"tseries() num_intervals must be < 1000000 ({count} provided)"
    function = site.text(3)
    if not wrong and len(site.arguments) == 4 and function not in _SERIES:
        wrong = (
            "tseries() expects one of the following aggregation functions: "
            f'{", ".join(_SERIES)} ("{function}" provided)'
        )
    if wrong or interval is None or count is None:
        site.error(wrong)
        return None
    number = integer_of(site.kind(0))
    if not _number_argument(site) or number is None:
        return None
    place = -1 if function is None else AGGREGATES.index(function)
    return Aggregate("tseries", number.signed, (interval, count, place))
