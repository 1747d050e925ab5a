"""What the content checks find in captions, together with their labels and human captions."""

from __future__ import annotations

import hashlib
import json

from capbias_core.data import Captions, Data
from capbias_core.load.checks import Finding, findings

VERSION = 4  # to be raised when a check changes


def content_of(data: Data, captions: Captions) -> list[Finding]:
    """The findings on captions. In a workspace they are stored under the content of what is read."""
    human = data.references
    read = [VERSION, captions.key, human.key if human else "", dict(data.labels_key), data.attribute.stored()]
    key = hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()

    def compute() -> list[Finding]:
        return findings(captions.frame, data.attribute, data.labels, human.frame if human else None)

    return data.sources.derived(f"content {key}", compute, list[Finding])
