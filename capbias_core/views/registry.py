"""The table of views. A new view is a row here and a module; page, command and every format follow."""

from __future__ import annotations

from capbias_core.views.directions import DIRECTIONS
from capbias_core.views.encoders import ENCODERS
from capbias_core.views.published import PUBLISHED
from capbias_core.views.table import TABLE
from capbias_core.views.view import View

VIEWS: dict[str, View] = {"table": TABLE, "directions": DIRECTIONS, "encoders": ENCODERS, "published": PUBLISHED}
