"""What the content checks find in stored captions, together with their labels and human captions."""

from __future__ import annotations

import hashlib
import json

from capbias_core.load.checks import Finding, findings
from capbias_core.workspace.labels import labels_of
from capbias_core.workspace.spec import RunSpec, attribute_from
from capbias_core.workspace.store import Workspace

VERSION = 4  # to be raised when a check changes


def content_of(workspace: Workspace, spec: RunSpec) -> list[Finding]:
    """The findings on the captions that a run reads, stored under the content of what it reads."""
    read = [VERSION, spec.captions, spec.references, spec.labels, spec.attribute]
    key = hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()

    def compute() -> list[Finding]:
        attribute = attribute_from(spec.attribute)
        human = workspace.frame(spec.references) if spec.references else None
        labels = labels_of(workspace, attribute, spec.labels)
        return findings(workspace.frame(spec.captions), attribute, labels, human)

    return workspace.derived(f"content {key}", compute, list[Finding])
