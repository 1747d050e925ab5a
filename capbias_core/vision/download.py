"""Fetch weights by name: `python -m capbias_core.vision.download NAME FILE`, in a process of its own.

The only place where the detector asks for the network. Exit code 0 where FILE is there; else the last line of stderr
says why not.
"""

from __future__ import annotations

import sys
from pathlib import Path

from capbias_core.vision.detect import ultralytics


def main(name: str, file: str) -> int:
    """Download; a part of a file is never taken for the whole (ultralytics writes it beside its final place)."""
    ultralytics(offline=False)
    from ultralytics.utils.downloads import GITHUB_ASSETS_NAMES, attempt_download_asset

    if name not in GITHUB_ASSETS_NAMES:
        detectors = [known for known in sorted(GITHUB_ASSETS_NAMES) if known.startswith("yolo") and "n.pt" in known]
        print(f"ultralytics knows no {name}, but {', '.join(detectors)} and others", file=sys.stderr)
        return 2
    try:
        attempt_download_asset(file, progress=False)
    except (OSError, MemoryError) as error:
        print(f"{' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0 if Path(file).is_file() else 1


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
