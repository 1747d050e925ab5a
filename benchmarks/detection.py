"""How quick the detector is: `python -m benchmarks.detection --images FOLDER --weights FILE`.

Milliseconds a photograph, in batches against one by one, the best of three rounds, by the clock and of processors (on a
busy machine look at these); with the weights given, and with a YOLOv8n of its full size in PyTorch (weights drawn at
random: as quick as learnt ones, and of no other use). Then how long the same photographs take when the workspace has
their boxes already.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from capbias_core.load.photographs import find_pictures, read_photograph
from capbias_core.vision.detect import Detector, ultralytics
from capbias_core.workspace.boxes import boxes_of, weights_of, weights_option
from capbias_core.workspace.store import Workspace

ROUNDS, AT_ONCE = 3, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    options = parser.parse_args()
    files = [options.images / name for name in find_pictures(options.images)["file"]]
    with tempfile.TemporaryDirectory() as folder:
        untaught = Path(folder) / "yolov8n.pt"
        ultralytics().YOLO("yolov8n.yaml").save(str(untaught))
        for weights in (options.weights, untaught):
            time_detector(weights, files)
        time_kept(Path(folder), options.weights, files)


def time_detector(weights: Path, files: list[Path]) -> None:
    detector, pixels = Detector(weights), [read_photograph(file) for file in files]
    alone = seconds(lambda: [detector.boxes([picture]) for picture in pixels])
    steps = [pixels[start : start + AT_ONCE] for start in range(0, len(pixels), AT_ONCE)]
    together = seconds(lambda: [detector.boxes(step) for step in steps])
    for how, taken in (("one by one", alone), (f"in batches of {AT_ONCE}", together)):
        wall, processor = (1000 * value / len(files) for value in taken)
        print(f"{weights.name}, {len(files)} photographs {how}: {wall:.0f} ms each, {processor:.0f} ms of a processor")


def time_kept(folder: Path, weights: Path, files: list[Path]) -> None:
    workspace = Workspace(folder)
    option = weights_option(workspace, str(weights))
    named = {file.name: file for file in files}
    for what in ("looked at", "again"):
        start = time.perf_counter()
        found = boxes_of(workspace, named, weights_of(workspace, option))
        print(f"{what}: {len(files)} photographs in {time.perf_counter() - start:.2f} s, {found.computed} of them new")


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """The least of three rounds: by the clock, and of processors, which a busy machine does not lengthen."""
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter(), time.process_time()
        work()
        taken.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return min(wall for wall, _ in taken), min(processor for _, processor in taken)


if __name__ == "__main__":
    main()
