"""The judge of a request that sees the photographs: which photographs, which judge, how it is asked."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from capbias_core.measures.base import SELF
from capbias_core.measures.imagecaptioner2 import SCRATCH
from capbias_core.vision.presets import PRESETS
from capbias_core.vision.prompts import PROMPTS
from capbias_core.workspace.photographs import ORIGINALS, photograph_sets
from capbias_core.workspace.store import Workspace

JUDGED = {"imagecaptioner2": "ImageCaptioner²", "vl_lic": "VL-LIC"}


def judge_picker(workspace: Workspace, collection: str, metrics: Sequence[str]) -> dict:
    """`Request.options` for the photographs and the judge, where a metric is asked for that sees photographs."""
    if not set(metrics) & set(JUDGED):
        return {}
    side = st.sidebar
    names = [item.name for item in photograph_sets(workspace, collection)]
    options = {
        "photographs": side.selectbox(
            "Photographs that the judge sees",
            sorted(names, key=lambda name: name == ORIGINALS),
            key="photographs",
            bind="query-params",
            help="The paper masks the person, so that nothing but the scene and the caption tells the "
            "value (command mask). The originals show the person.",
        )
    }
    if "imagecaptioner2" not in metrics:
        return options
    judge = side.selectbox(
        "Judge",
        [SCRATCH, *PRESETS, SELF],
        key="judge",
        bind="query-params",
        accept_new_options=True,
        help="scratch: Show, Attend and Tell, trained here on these captions (half an hour a seed and caption on a CPU)"
        ". Others are captioners on this machine, asked as they are: a name, or type a folder. self: each captioner "
        "judges its own captions.",
    )
    options["prompt"] = side.selectbox(
        "Prompt",
        list(PROMPTS),
        key="prompt",
        bind="query-params",
        help="statement: “… Therefore, the gender is [answer]”. question: “What is the gender of …? … [answer]”.",
    )
    return options | {"judge": judge}
