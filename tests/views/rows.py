"""Rows of results for tests of views."""

import pandas as pd

from capbias_core.types import A_TO_T, RESULT_COLUMNS, T_TO_A, Result


def row(metric: str, value: float, low: float | None = None, high: float | None = None, **more) -> dict:
    usual = {"attribute": "gender", "model": "m", "encoder": "ngram", "scale": 100.0, "seeds": 10, "n": 316}
    usual |= {"training": 2844, "interval": "refits", "spread": 1.0, "ci_low": low, "ci_high": high}
    return Result(metric=metric, value=value, **(usual | more)).row()


def frame(*rows: dict) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(RESULT_COLUMNS))


def pair(model: str, across: tuple, up: tuple, metric: str = "DBAC", **more) -> list[dict]:
    """Rows of both directions. across, up: the value and its interval."""
    more = {"model": model, "coverage": "with_references"} | more
    return [row(metric, *values, direction=way, **more) for way, values in ((A_TO_T, across), (T_TO_A, up))]


def masked(metric: str = "LIC_M", **values) -> pd.DataFrame:
    """Rows of the view masking. Condition -> (value, half width of its interval)."""
    original, rows = values["original"][0], []
    for condition, (value, half) in values.items():
        change = {"to_original": value - original, "original_there": original}
        change |= {"to_original_low": value - original - half, "to_original_high": value - original + half}
        own = {"captioner": "m", "masked": condition, "low": value - half, "high": value + half, "column": metric}
        own |= {"neutral": 25.0 if metric == "LIC_M" else 0.0, "setting_name": "ngram, 10 seeds"}
        rows.append(
            row(metric, value) | own | (change if condition != "original" else dict.fromkeys(change, float("nan")))
        )
    return pd.DataFrame(rows)
