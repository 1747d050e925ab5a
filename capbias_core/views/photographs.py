"""One photograph: what it shows, what each condition hides of it, its captions' scores and maps."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from capbias_core.attackers.what_if import Rescored, StoredAttackers
from capbias_core.errors import CapbiasError
from capbias_core.kinds import BOXES, PHOTOGRAPHS
from capbias_core.load.ids import normalise_image_id
from capbias_core.load.photographs import PICTURES, check_photograph, read_photograph
from capbias_core.measures.attribution import MEASURE, WINDOW
from capbias_core.types import BOX_COLUMNS, CONDITIONS
from capbias_core.views.results import current_runs
from capbias_core.views.scored import CaptionScores
from capbias_core.vision import masking
from capbias_core.vision.grad_cam import Window, upsampled
from capbias_core.whole_files import private_folder
from capbias_core.workspace.conditions import ORIGINAL
from capbias_core.workspace.limited import within_limits
from capbias_core.workspace.photographs import MADE_BY, ORIGINALS, keep_images, people_sources
from capbias_core.workspace.store import UPLOADED, Item, RunRow, Workspace, bytes_frame, content_hash


def photographs_of(workspace: Workspace, collection: str, name: str = ORIGINALS) -> dict[str, Path]:
    """The file of each photograph of a folder of a collection, by image id; empty where there is no such folder."""
    items = [item for item in workspace.items(PHOTOGRAPHS, collection) if item.name == name]
    if not items:
        return {}
    folder, frame = Path(items[0].details["folder"]), workspace.frame(items[0].hash)
    return {image: folder / file for image, file in zip(frame["image_id"], frame["file"], strict=True)}


def masked_folders(
    workspace: Workspace, collection: str, sets: Mapping[str, Item] = MappingProxyType({})
) -> dict[str, Item]:
    """By condition a stored folder of masked photographs: that of its caption set, if known, else the newest. sets:
    caption sets by condition."""
    items = workspace.items(PHOTOGRAPHS, collection)
    folders = {item.details.get("condition", ORIGINAL): item for item in items}
    for condition, item in sets.items():
        read = item.details.get(MADE_BY, {}).get("photographs", {})
        same = [folder for folder in items if (folder.name, folder.hash) == (read.get("name"), read.get("item"))]
        folders |= {condition: same[0]} if same else {}
    return {condition: folders[condition] for condition in CONDITIONS[1:] if condition in folders}


def objects_on(rows: pd.DataFrame, departures: Mapping[str, float]) -> list[str]:
    """The names of what is marked on a photograph but people: the largest departure first, then the largest in size."""
    sizes = ((rows["x2"] - rows["x1"]) * (rows["y2"] - rows["y1"])).groupby(rows["object"]).sum()
    names = [name for name in sizes.index if name != masking.PERSON]
    return sorted(names, key=lambda name: (-departures.get(name, 0.0), -sizes[name]))


def hidden_of(
    rows: pd.DataFrame,
    size: tuple[int, int],
    chosen: str = "",
    fraction: float = masking.HALF,
    boxes: pd.DataFrame | None = None,
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """What each condition hides of a photograph, (height, width) booleans, and why others hide nothing. `person` is
    drawn by the outline, else by the box.

    rows: its outlines or boxes. size: (height, width). chosen: the object that is hidden. boxes: a detector's, for the
    condition box. Raises CapbiasError for outlines of another size.
    """
    hidden: dict[str, np.ndarray] = {}
    reasons: dict[str, str] = {}
    outlined = "outline" in rows and len(rows) > 0
    for condition in CONDITIONS[1:]:
        shape = ("segment" if outlined else "box") if condition == "person" else condition
        marks = boxes if condition == "box" and boxes is not None and len(boxes) else rows
        try:
            if shape in masking.OF_OUTLINES and not outlined:
                reasons[condition] = "no outlines are marked on it"
            else:
                rule = masking.MaskRule(shape, fraction, departures={chosen: 1.0})
                hidden[condition] = masking.hidden_pixels(marks, size, rule)
        except masking.NothingToMask:
            reasons[condition] = "nobody is marked on it"
    if "object" in hidden and not hidden["object"].any():  # as it is, the photograph would be no variant of itself
        del hidden["object"]
        reasons["object"] = "no such object is marked on it"
    return hidden, reasons


@dataclass(frozen=True)
class Variant:
    """A photograph under a condition. pixels: None if it cannot be shown. text: how much was masked, or why nothing is
    shown. made_here: it is drawn here, and no folder of the collection holds it."""

    pixels: np.ndarray | None
    text: str = ""
    made_here: bool = True


def variants(
    workspace: Workspace,
    collection: str,
    image: str,
    sets: Mapping[str, Item],
    departures: Mapping[str, float],
    read: Callable[[Path], np.ndarray] = read_photograph,
    frame: Callable[[str], pd.DataFrame] | None = None,
) -> dict[str, Variant]:
    """The photograph of an image under each condition: as captioned where that folder is stored, else drawn by the
    outlines and boxes of the collection. sets: caption sets by condition. departures: how much objects go with a value;
    the one on the photograph that does most is hidden. read: of a file to pixels. frame: of an item by content hash."""
    pixels = read(photographs_of(workspace, collection)[image])
    sources = people_sources(workspace, collection)
    frames = {item.name: (frame or workspace.frame)(item.hash) for item in sources}
    marks = {name: of_source[of_source["image_id"] == image] for name, of_source in frames.items()}
    rows = next(iter(marks.values()), pd.DataFrame(columns=list(BOX_COLUMNS)))
    detector = next((item.name for item in sources if item.kind == BOXES), "")
    thing = next(iter(objects_on(rows, departures)), "")
    hidden, reasons = hidden_of(rows, pixels.shape[:2], thing, boxes=marks.get(detector))
    shown = {condition: Variant(None, f"No image: {reason}.") for condition, reason in reasons.items()}
    shown[ORIGINAL] = Variant(pixels, made_here=False)
    for condition, mask in hidden.items():
        what = thing if condition in masking.OF_OBJECTS else detector if condition == "box" else ""
        shown[condition] = Variant(masking.filled(pixels, mask), masked_text(float(mask.mean()), what))
    for condition, item in masked_folders(workspace, collection, sets).items():
        file = photographs_of(workspace, collection, item.name).get(image)
        if file and file.is_file():
            shown[condition] = Variant(read(file), made_here=False)
    return {condition: shown[condition] for condition in CONDITIONS if condition in shown}


def masked_text(share: float, what: str = "") -> str:
    """How much of a photograph was masked. what: the object that is on it, or the detector."""
    return f"Masked: {share:.1%} of the image{f' ({what})' if what else ''}."


def rescored(scores: CaptionScores, attackers: StoredAttackers, image: str, captions: Sequence[str]) -> list[Rescored]:
    """Captions of an image scored by the attackers of one set, so that those of every condition are scored alike.

    An image of the set is scored by the attacker of the fold that held it out, another one by the mean of all.
    """
    folds = scores.table.loc[scores.table["image_id"] == image, "fold"]
    fold = int(folds.iloc[0]) if len(folds) else None
    merge = scores.run.spec.merge_masks
    return [attackers.score(text, scores.attribute, fold, merge) for text in captions]


def keep_uploaded(
    workspace: Workspace, collection: str, files: Sequence[Path], tried: Collection[Path] = ()
) -> tuple[Item, dict[str, str]]:
    """Keep photographs that were uploaded, beside earlier ones; the item, and why others were refused.

    files: those that can be read are moved. One of the same name is replaced; one of another name for an image that is
    kept already is refused. tried: files in which `photograph_fault` saw nothing wrong. Raises CapbiasError where none
    can be kept, and where the collection's photographs are in a folder of the user's.
    """
    name = content_hash(pd.DataFrame({"collection": [collection]}))
    folder = (workspace.folder / "pictures" / f"{UPLOADED}{name}").resolve()
    held = [item for item in workspace.items(PHOTOGRAPHS, collection) if item.name == ORIGINALS]
    if held and Path(held[0].details["folder"]) != folder:
        raise CapbiasError(
            f"The photographs of the collection {collection!r} are in {held[0].details['folder']}.",
            "Copy more to that folder, or upload them to another collection.",
        )
    private_folder(folder)
    kept = {normalise_image_id(path.name): path.name for path in folder.iterdir()}
    refused: dict[str, str] = {}
    for file in files:
        if fault := None if file in tried else photograph_fault(file):
            refused[file.name] = fault.message
        elif (other := kept.setdefault(normalise_image_id(file.name), file.name)) != file.name:
            refused[file.name] = f"{file.name} is a photograph of the image of {other}, which is kept."
        else:
            file.replace(folder / file.name)
    if not kept:
        folder.rmdir()
        raise CapbiasError(" ".join(refused.values()) or "No photograph was uploaded.")
    return keep_images(workspace, folder, collection), refused


def photograph_fault(file: Path) -> CapbiasError | None:
    """Why an uploaded file cannot be kept as a photograph; None where it can."""
    if file.suffix.lower() not in PICTURES:
        ends = ", ".join(sorted(PICTURES))
        return CapbiasError(f"{file.name} is not a photograph: its name ends in none of {ends}.")
    try:
        within_limits(file.name, check_photograph, file)
    except CapbiasError as error:
        return error
    return None


@dataclass(frozen=True)
class KeptMaps:
    """The maps of one run.

    Columns of the table, one row per map: image_id, caption_index, kept_at (row of the caption in its set), place and
    word (in the caption, split at spaces), value (index of the attribute's), rows and columns (of the map), height and
    width (of the photograph), and its metrics.
    """

    run: RunRow
    table: pd.DataFrame
    values: np.ndarray  # all maps one after the other

    def heat(self, row: int) -> np.ndarray:
        """(rows, columns) float32 in [0, 1]: the map of this row of the table."""
        shapes = self.table[["rows", "columns"]].to_numpy()
        start, size = int(shapes[:row].prod(axis=1).sum()), int(shapes[row].prod())
        return self.values[start : start + size].reshape(shapes[row]).astype(np.float32)

    def window(self, row: int) -> Window:
        """The part of the photograph that the map of this row covers."""
        left, top, right, bottom = (int(self.table.iloc[row][name]) for name in WINDOW)
        return left, top, right, bottom

    def of_image(self, image_id: str) -> list[int]:
        """The rows of an image's maps."""
        return np.flatnonzero(self.table["image_id"] == image_id).tolist()


def attribution_runs(workspace: Workspace, collection: str, attribute: str) -> dict[str, RunRow]:
    """The newest finished run of maps of each caption set, by name, for an attribute."""
    runs: dict[str, RunRow] = {}
    for run in current_runs(workspace, collection, MEASURE.name):
        if run.spec.attribute.get("name") == attribute:
            runs.setdefault(run.spec.model, run)
    return runs


def kept_maps(run: RunRow) -> KeptMaps:
    """The maps that a finished run left."""
    maps = run.read("maps", lambda data: np.load(io.BytesIO(data))["values"])
    return KeptMaps(run, run.read("table", bytes_frame), maps)


def reduced(pixels: np.ndarray, longest: int) -> np.ndarray:
    """A photograph whose longer side is so many pixels at most."""
    from PIL import Image

    picture = Image.fromarray(pixels)
    share = min(1.0, longest / max(picture.size))
    size = (max(1, round(picture.width * share)), max(1, round(picture.height * share)))
    return np.asarray(picture.resize(size, Image.Resampling.BILINEAR))


def jpeg(pixels: np.ndarray) -> bytes:
    """A picture as the content of a file."""
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "JPEG", quality=85)
    return content.getvalue()


# A map of a captioner's word over the photograph. The photograph turns grey, and the map is laid over it from dark blue
# (a little) to yellow (most): lightness rises all the way, so that it is read without telling red from green, on light
# and dark grounds alike. The ends and quarters of cividis (Nuñez et al., PLOS ONE 2018), made for readers who are
# colour-blind.
RAMP = np.array([(0, 34, 78), (66, 78, 108), (125, 124, 120), (188, 175, 111), (254, 232, 56)], dtype=np.float32)
STRONGEST = 0.75  # how much of the photograph the map hides where it is 1
LUMINANCE = (0.299, 0.587, 0.114)


def heat_over(
    pixels: np.ndarray, heat: np.ndarray, window: Window | None = None, person: np.ndarray | None = None
) -> np.ndarray:
    """A photograph (H, W, 3) uint8 with a map (h, w) in [0, 1] laid over it: (H', W', 3) uint8, at most 800 a side.

    window: the part of the photograph that the map covers, None for all. person: (H, W) booleans, drawn as a white
    outline with a black line around.
    """
    from PIL import Image, ImageFilter

    height, width = pixels.shape[:2]
    over = upsampled(heat, height, width, window)
    photograph = reduced(pixels, 800).astype(np.float32)
    size = photograph.shape[1::-1]
    strength = np.asarray(Image.fromarray(over).resize(size, Image.Resampling.BILINEAR)).clip(0, 1)
    grey = np.repeat(photograph @ np.array(LUMINANCE, dtype=np.float32), 3).reshape(photograph.shape)
    ends = np.linspace(0, 1, len(RAMP))
    colours = np.stack([np.interp(strength, ends, RAMP[:, channel]) for channel in range(3)], axis=-1)
    opacity = STRONGEST * np.sqrt(strength)[..., None]  # so that weak parts are seen too
    picture = ((1 - opacity) * grey + opacity * colours).round().astype(np.uint8)
    if person is not None:
        mask = Image.fromarray(person.astype(np.uint8)).resize(size, Image.Resampling.NEAREST)
        wider, narrower = (np.asarray(mask.filter(edge(3))) for edge in (ImageFilter.MaxFilter, ImageFilter.MinFilter))
        picture[(wider > 0) & (np.asarray(mask) == 0)] = 0
        picture[(np.asarray(mask) > 0) & (narrower == 0)] = 255
    return picture


def heat_text(word: str, outside: float, hit: float) -> str:
    """What a map shows, in words, for those who cannot see it. outside: its attribution score, [0, 1]. hit: 1 where its
    maximum lies on a person.

    >>> heat_text("man", 0.25, 1.0)
    'Map of the word man: strongest on a person; 25% of it lies outside people.'
    """
    if math.isnan(outside):
        return f"Map of the word {word}: it is 0 everywhere."
    on = "on a person" if hit else "outside people"
    return f"Map of the word {word}: strongest {on}; {outside:.0%} of it lies outside people."


def heat_legend() -> str:
    """HTML: the ramp between the words for its ends."""
    stops = ", ".join(f"rgb({red:.0f},{green:.0f},{blue:.0f})" for red, green, blue in RAMP)
    bar = f'<span style="display:inline-block;width:8em;height:.8em;background:linear-gradient(90deg,{stops})"></span>'
    return f"<span>the word depends on it: a little {bar} most. Grey: not at all. White line: people.</span>"
