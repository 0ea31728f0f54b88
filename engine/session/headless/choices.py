"""Names that options of a command line choose from, as far as they are about probes."""

from typing import Final

from engine.probes.return_catchers import RETURNS as RETURNS
from engine.probes.techniques import TECHNIQUES as TECHNIQUES
from engine.probes.techniques import technique_names

TECHNIQUE_NAMES: Final = technique_names()
