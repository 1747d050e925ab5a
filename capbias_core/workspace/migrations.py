"""Catalogues of earlier versions become today's, in one transaction, when a workspace is opened."""

from __future__ import annotations

import json
import sqlite3

from capbias_core.types import ORIGIN_COLUMNS

# The form of the catalogue, kept in SQLite's user_version. 0: until November 2026, one protocol number for all runs. 1:
# results do not say what their intervals are over, which was images, and have no verdict.
FORM = 2
# What measures were called in form 0.
MEASURES = {
    "attack": "lic",
    "counting": "ratio_error",
    "cooccurrence": "bias_amplification",
    "combinations": "multi",
    "predictability": "dpa",
    "quality": "caption_quality",
    "naming": "naming_ratio",
    "judge": "imagecaptioner2",
    "captions": "caption_scores",
    "reading": "encoder_view",
}


def migrate(db: sqlite3.Connection) -> None:
    """Bring a catalogue whose tables exist to today's form. Numbers of runs of form 0 stay in it and are not shown."""
    if db.execute("PRAGMA user_version").fetchone()[0] >= FORM:
        return
    db.execute("BEGIN IMMEDIATE")
    there = {row[1] for row in db.execute("PRAGMA table_info(results)")}
    for column in (*ORIGIN_COLUMNS, "interval", "verdict"):
        if column not in there:
            db.execute(f'ALTER TABLE results ADD COLUMN "{column}" TEXT')
    if "training" not in there:
        db.execute("ALTER TABLE results ADD COLUMN training INTEGER DEFAULT 0")
    db.execute("UPDATE results SET interval = iif(ci_low IS NULL, '', 'images') WHERE interval IS NULL")
    db.execute("UPDATE results SET verdict = '' WHERE verdict IS NULL")
    if "metrics" not in {row[1] for row in db.execute("PRAGMA table_info(runs)")}:
        db.execute("ALTER TABLE runs ADD COLUMN metrics TEXT NOT NULL DEFAULT '[]'")
    for run_id, text in db.execute("SELECT run_id, spec FROM runs").fetchall():
        spec = json.loads(text)
        if "measure" not in spec:
            db.execute("UPDATE runs SET spec=? WHERE run_id=?", (json.dumps(_today(spec)), run_id))
    db.execute(f"PRAGMA user_version={FORM}")
    db.execute("COMMIT")


def _today(spec: dict) -> dict:
    """A spec of form 0 with today's keys; version 0 is that of no measure."""
    objects = spec.get("objects")
    return {
        "measure": MEASURES.get(spec["family"], spec["family"]),
        "version": 0,
        "model": spec["model"],
        "captions": spec["captions"],
        "references": spec["references"],
        "labels": spec["labels"],
        "attribute": spec["attribute"],
        "objects": objects if isinstance(objects, dict) else {},
        "coverage": spec["condition"],
        "shared_with": "",
        "options": {
            **spec.get("options", {}),
            "attacker": spec["attacker"],
            "seeds": len(spec["seeds"]),
            "merge_masks": spec["merge_masks"],
        },
    }
