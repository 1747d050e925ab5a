"""The table of views. A new view is a row here and a module; page, command and every format follow."""

from __future__ import annotations

from capbias_core.views.captions import CAPTIONS
from capbias_core.views.change import BEFORE_AND_AFTER
from capbias_core.views.directions import DIRECTIONS
from capbias_core.views.encoders import ENCODERS
from capbias_core.views.masking import MASKING
from capbias_core.views.published import PUBLISHED
from capbias_core.views.table import TABLE
from capbias_core.views.view import View
from capbias_core.views.where import WHERE
from capbias_core.views.words import WORDS

VIEWS: dict[str, View] = {
    "table": TABLE,
    "words": WORDS,
    "captions": CAPTIONS,
    "where": WHERE,
    "change": BEFORE_AND_AFTER,
    "directions": DIRECTIONS,
    "encoders": ENCODERS,
    "masking": MASKING,
    "published": PUBLISHED,
}
