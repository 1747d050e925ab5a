"""AnonymousBench (ImageCaptioner2, section Which metric is better): photographs on which nobody's value can be seen.

People say of each caption whether it lets them guess the value; without people, the share of captions that name one is
given, and called a proxy. Other metrics are compared with either by Pearson's correlation over captioners.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from capbias_core.aggregate import Counts, Estimate, unlabelled
from capbias_core.analysis.consistency import alignment
from capbias_core.attributes import need_words
from capbias_core.metrics.share import share
from capbias_core.prepare.tokens import Tokens
from capbias_core.types import RESULT_COLUMNS, Attribute, Result

PROXY = "human_guess_proxy"
SCALE = 100.0
METHOD = "share of captions that name a value, a proxy for people's guesses"


def proxy_scores(sets: Mapping[str, pd.DataFrame], attribute: Attribute) -> pd.DataFrame:
    """A row of RESULT_COLUMNS for each captioner. sets: captions (image_id, caption) of the benchmark by captioner.

    Raises CapbiasError for an attribute that captions do not name.
    """
    need_words(attribute)
    return pd.DataFrame([_row(name, frame, attribute) for name, frame in sets.items()], columns=list(RESULT_COLUMNS))


def _row(name: str, frame: pd.DataFrame, attribute: Attribute) -> dict:
    named = Tokens.of(frame["caption"]).with_any(attribute.value_words).toarray() > 0
    counts = Counts.of_captions(frame["image_id"], unlabelled, {"named": named.any(axis=1)}, sort=False)
    found = Estimate.read(counts.reading(("named", "captions")), share, SCALE, (0, SCALE), share=True)
    method = f"{METHOD}; {found.interval_method}"
    return Result(attribute.name, name, PROXY, n=len(frame), method=method, **found.columns()).row()


def proxy_alignment(scores: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Pearson of every metric of a results table with the proxy, as rows of `alignment` that say so."""
    rows = alignment(results, scores.set_index("model")["value"] / SCALE)
    return rows.assign(
        metric="proxy_alignment", method=rows["method"].str.replace("the human score", "the proxy for human guesses")
    )
