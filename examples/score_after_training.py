"""Score a captioner's bias after every epoch of its training.

    python examples/score_after_training.py

`BiasCallback` needs no framework: call `on_epoch_end` wherever an epoch ends. `trainer_callback` makes one for the
Trainer of Hugging Face. Run as a script, it plays a training on the bundled demo: a captioner that repeats its training
data more and more.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

import capbias_core as capbias
from capbias_core.resources import DEMO_FOLDER


class BiasCallback:
    """Scores the captions of validation images at the end of an epoch.

    caption: captions those images with the model as it is: a list of {"image_id", "caption"}. every: epochs between two
    scores. inputs: further arguments of `capbias.score`, such as labels, attribute and references.
    """

    def __init__(
        self,
        caption: Callable[[], list[dict[str, Any]]],
        metrics: Sequence[str] = ("LIC", "LIC_M"),
        every: int = 1,
        **inputs: Any,
    ):
        self.caption, self.metrics, self.every, self.inputs = caption, list(metrics), every, inputs
        self.scores: list[dict[str, float]] = []

    def on_epoch_end(self, epoch: int) -> dict[str, float]:
        """The scores of this epoch by metric, with the ends of their intervals; {} if it is not to be scored."""
        if epoch % self.every:
            return {}
        report = capbias.score({"model": self.caption()}, metrics=self.metrics, **self.inputs)
        row: dict[str, float] = {"epoch": epoch}
        for name in dict.fromkeys(report.table["metric"]):
            found = report[name]
            row[name] = found.value
            if found.interval:
                row[f"{name}_low"], row[f"{name}_high"] = found.interval
        self.scores.append(row)
        return row

    @property
    def table(self) -> pd.DataFrame:
        """A row per epoch that was scored."""
        return pd.DataFrame(self.scores)


def trainer_callback(bias: BiasCallback):
    """A callback for the Trainer of transformers, whose log gets the scores."""
    from transformers import TrainerCallback

    class CaptionBias(TrainerCallback):
        def on_epoch_end(self, args, state, control, **_more):
            scores = bias.on_epoch_end(round(state.epoch))
            if scores:
                state.log_history.append({f"bias_{name}": value for name, value in scores.items()})

    return CaptionBias()


# A training to play it on: the demo's captioners stand for a model before and after.


def demo_captioner() -> tuple[Callable[[], list[dict]], Callable[[float], None]]:
    """How captions are written, and what training does: from the faithful captioner of the demo to the amplifier."""
    before, after = (
        json.loads((DEMO_FOLDER / "results" / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("faithful", "amplifier")
    )
    progress = {"share": 0.0}

    def caption() -> list[dict]:
        rng = random.Random(1)
        pairs = zip(before, after, strict=True)
        return [late if rng.random() < progress["share"] else early for early, late in pairs]

    return caption, lambda share: progress.update(share=share)


def main(epochs: int = 3, seeds: int = 5) -> pd.DataFrame:
    """Train and score; returns the scores by epoch."""
    caption, train = demo_captioner()
    bias = BiasCallback(
        caption,
        labels=DEMO_FOLDER / "attributes.csv",
        attribute="gender",
        references=DEMO_FOLDER / "references.json",
        seeds=seeds,
    )
    for epoch in range(1, epochs + 1):
        train(epoch / epochs)
        scores = bias.on_epoch_end(epoch)
        print(f"epoch {epoch}: LIC {scores['LIC']:.1f} [{scores['LIC_low']:.1f}, {scores['LIC_high']:.1f}]")
    return bias.table


if __name__ == "__main__":
    main()
