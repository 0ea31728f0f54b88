"""Names of functions in the lines of frames."""

import pytest

from engine.session.debugger.frames import shown_function

_STEP = "std::_Function_handler<long (long), long (*)(long)>::_M_invoke(std::_Any_data const&)"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("geo::Shape::area(int) const", "geo::Shape::area"),
        ("call<long (*&)(long), long>(long (*&)(long))", "call<long (*&)(long), long>"),
        (
            "std::__shared<Item, (std::Lock)2>::make<int>(int)",
            "std::__shared<Item, (std::Lock)2>::make<int>",
        ),
        ("std::function<long (long)>::operator()(long) const",) * 2,
        (_STEP, _STEP),
    ],
)
def test_parameters_stay_where_gdb_cannot_read_the_name(name: str, shown: str) -> None:
    assert shown_function(name) == shown
