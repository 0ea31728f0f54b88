"""All panes, as they are registered."""

import inspect

from controlkit import sample
from textual.binding import Binding

import tui.panes.registry
from engine.session import GuestConfig
from tui.app import KprobeApp
from tui.panes.registry import PANES, by_id, by_key
from tui.widgets.pane import Pane


def test_each_pane_has_its_line_its_number_and_its_name() -> None:
    panes = KprobeApp(GuestConfig(sample("x86_64", "recursion"))).panes
    kinds = [kind for _, kind in inspect.getmembers(tui.panes.registry, inspect.isclass)]
    registered = {kind for kind in kinds if issubclass(kind, Pane) and kind is not Pane}
    assert {type(pane) for pane in panes} == registered
    assert len({spec.key for spec in PANES}) == len(PANES)
    for spec, pane in zip(PANES, panes, strict=True):
        assert panes[spec.id] is pane
        assert (pane.id, pane.key) == (spec.id, spec.key)
        assert by_id(spec.id) is by_key(spec.key) is spec
        assert getattr(panes, spec.id) is pane


def test_each_pane_has_help_and_keys_that_can_be_changed() -> None:
    for pane in KprobeApp(GuestConfig(sample("x86_64", "recursion"))).panes:
        assert (pane.HELP or pane.content.HELP or "").lstrip().startswith("#")
        for binding in (*pane.BINDINGS, *pane.content.BINDINGS):
            assert isinstance(binding, Binding)
            assert binding.id
