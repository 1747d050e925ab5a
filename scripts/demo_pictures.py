"""The demo's pictures: for each activity a plain figure that says nothing of gender, and its things; their outlines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

SIZE = (480, 360)
FINER = 3  # drawn this many times as large, then averaged down
INK = "#39424e"
SKIN, CAP, SHIRT, TROUSERS, SHOE, FACE = "#c98f6b", "#7d4a63", "#3f6fa0", "#2f3a4c", "#2a2a2a", "#3a241c"
CROWD = ("#cfdae2", "#ecdcc6", "#cfe0d3", "#ebd0ca", "#d6d8ea")

PERSON, NOTHING = "person", ""
# The things that get an outline, with COCO's names and numbers.
CATEGORIES = {
    PERSON: 1,
    "motorcycle": 4,
    "horse": 19,
    "umbrella": 28,
    "baseball bat": 39,
    "skateboard": 41,
    "surfboard": 42,
    "cake": 61,
    "cell phone": 77,
}

# Drawn in order on 480 x 360 points: (kind, colour, numbers...), as the functions below take them. Of whom or what the
# shapes after it are, says ("of", name); figures and limbs are of the person anyway.
SCENES: dict[str, tuple[tuple, ...]] = {
    "phone": (
        ("box", "#dfe9ef", 0, 0, 480, 360, 0),
        ("box", "#c3d0d8", 20, 60, 120, 260, 0),
        ("box", "#b3c3cd", 130, 100, 210, 260, 0),
        ("box", "#c3d0d8", 390, 40, 470, 260, 0),
        *(("box", "#e9f1f5", x, y, x + 18, y + 24, 2) for x in (36, 74) for y in (80, 124, 168)),
        ("box", "#a9aeb3", 0, 252, 480, 360, 0),
        ("box", "#c9cdd1", 0, 252, 480, 276, 0),
        ("shape", "#c96f5a", 262, 226, 292, 182, 388, 182, 424, 226),
        ("box", "#c96f5a", 232, 220, 468, 276, 18),
        ("shape", "#e6f2f7", 286, 222, 304, 192, 338, 192, 338, 222),
        ("shape", "#e6f2f7", 348, 222, 348, 192, 382, 192, 406, 222),
        ("disc", INK, 282, 276, 24, 24),
        ("disc", INK, 416, 276, 24, 24),
        ("disc", "#c9cdd1", 282, 276, 11, 11),
        ("disc", "#c9cdd1", 416, 276, 11, 11),
        ("figure", 160, 116, 160, 222, 122, 196, 134, 236, 146, 274, 142, 326, 174, 274, 178, 326),
        ("arm", 174, 166, 206, 176, 190, 126),
        ("of", "cell phone"),
        ("line", INK, 13, 187, 104, 184, 132),
        ("of", NOTHING),
    ),
    "umbrella": (
        ("box", "#b9c6d2", 0, 0, 480, 360, 0),
        ("box", "#93a5b5", 0, 286, 480, 360, 0),
        ("disc", "#a9bac8", 120, 330, 80, 10),
        ("disc", "#a9bac8", 372, 322, 60, 8),
        *(
            ("line", "#dce6ee", 3, x + y // 9, y, x + y // 9 - 8, y + 26)
            for number, x in enumerate(range(14, 480, 46))
            for y in range(12 + 37 * (number % 3), 280, 84)
        ),
        ("of", "umbrella"),
        ("line", INK, 6, 270, 92, 270, 214),
        ("slice", "#e0a458", 270, 128, 118, 96, 180, 360),
        ("slice", "#f4ead7", 270, 128, 74, 96, 180, 360),
        ("slice", "#e0a458", 270, 128, 28, 96, 180, 360),
        ("line", INK, 5, 270, 24, 270, 36),
        ("of", NOTHING),
        ("figure", 226, 158, 222, 246, 184, 226, 172, 262, 196, 288, 176, 330, 244, 288, 262, 328),
        ("arm", 240, 208, 252, 222, 270, 200),
        ("of", "umbrella"),
        ("line", INK, 6, 270, 206, 270, 222, 278, 228, 286, 222),
        ("of", NOTHING),
    ),
    "cake": (
        ("box", "#f3e6d3", 0, 0, 480, 360, 0),
        ("box", "#d9ecf2", 300, 40, 420, 136, 6),
        ("line", "#ffffff", 6, 360, 40, 360, 136),
        ("line", "#ffffff", 6, 300, 88, 420, 88),
        ("box", "#c9a27a", 40, 46, 150, 120, 4),
        ("line", "#a98259", 3, 95, 50, 95, 116),
        ("disc", "#7c5d3d", 87, 84, 3, 3),
        ("disc", "#7c5d3d", 103, 84, 3, 3),
        ("figure", 196, 118, 196, 246, 150, 224, 186, 254, 186, 300, 186, 330, 206, 300, 206, 330),
        ("box", "#a9825a", 0, 262, 480, 284, 0),
        ("box", "#c9a27a", 0, 284, 480, 360, 0),
        ("line", "#a9825a", 3, 160, 292, 160, 352),
        ("line", "#a9825a", 3, 330, 292, 330, 352),
        ("of", "cake"),
        ("disc", "#ffffff", 308, 262, 82, 9),
        ("box", "#6b4430", 248, 198, 368, 260, 8),
        ("box", "#f0a6b8", 244, 190, 372, 214, 10),
        *(("disc", "#f0a6b8", x, 216, 10, 10 + x % 7) for x in range(256, 366, 20)),
        *(("disc", "#d9738f", x, 188, 7, 6) for x in (270, 308, 346)),
        ("shape", "#ffffff", 272, 138, 312, 148, 298, 188),
        ("of", NOTHING),
        ("arm", 210, 168, 250, 198, 284, 152),
    ),
    "horse": (
        ("box", "#cfe5ef", 0, 0, 480, 360, 0),
        ("disc", "#f6d98b", 60, 60, 28, 28),
        ("disc", "#a9c98f", 120, 268, 220, 70),
        ("disc", "#b8d39f", 400, 272, 220, 60),
        ("box", "#97bb7c", 0, 262, 480, 360, 0),
        *(("box", "#d9c3a0", x, 190, x + 14, 292, 3) for x in range(20, 480, 106)),
        ("box", "#e4d2b4", 0, 206, 480, 219, 2),
        ("box", "#e4d2b4", 0, 246, 480, 259, 2),
        ("of", "horse"),
        ("line", "#5f4330", 12, 424, 190, 444, 220, 440, 268),
        *(("line", "#7c5940", 17, x, 230, x + 1, 318) for x in (276, 306, 384, 412)),
        *(("line", "#4a3526", 17, x + 1, 312, x + 1, 318) for x in (276, 306, 384, 412)),
        ("disc", "#8d674b", 344, 208, 88, 42),
        ("shape", "#8d674b", 258, 204, 236, 128, 268, 104, 300, 120, 326, 182),
        ("shape", "#8d674b", 266, 100, 272, 78, 284, 104),
        ("line", "#8d674b", 34, 264, 122, 218, 156),
        ("line", "#5f4330", 14, 284, 106, 306, 136, 320, 168),
        ("disc", INK, 254, 120, 4, 4),
        ("disc", INK, 210, 158, 3, 3),
        ("of", NOTHING),
        ("figure", 130, 128, 130, 236, 90, 206, 96, 246, 118, 284, 112, 330, 144, 284, 148, 330),
        ("arm", 144, 178, 190, 206, 246, 196),
        ("box", "#c98b4e", 244, 182, 262, 210, 4),
        ("line", "#f1e2c4", 5, 265, 186, 265, 207),
    ),
    "skateboard": (
        ("box", "#f0e3cf", 0, 0, 480, 360, 0),
        ("disc", "#f7c97f", 392, 74, 34, 34),
        ("box", "#d8c6aa", 0, 210, 70, 300, 0),
        ("box", "#cdb997", 80, 180, 140, 300, 0),
        ("box", "#a7abaf", 0, 296, 480, 360, 0),
        ("shape", "#8f9499", 250, 300, 340, 288, 400, 262, 440, 222, 458, 180, 480, 180, 480, 300),
        ("line", "#6f757b", 6, 456, 180, 480, 180),
        ("figure", 218, 76, 226, 166, 160, 126, 122, 104, 190, 198, 186, 240, 272, 190, 272, 232),
        ("arm", 233, 126, 278, 124, 314, 92),
        ("of", "skateboard"),
        ("line", "#5a4a7a", 10, 142, 244, 158, 254, 296, 244, 312, 230),
        ("disc", "#e8823a", 176, 266, 10, 10),
        ("disc", "#e8823a", 280, 258, 10, 10),
        ("of", NOTHING),
        ("disc", "#91969b", 226, 324, 74, 7),
    ),
    "surfboard": (
        ("box", "#d5ebf2", 0, 0, 480, 360, 0),
        ("disc", "#f9d77e", 390, 70, 32, 32),
        ("box", "#6fb3c8", 0, 150, 480, 250, 0),
        ("line", "#a8d6e2", 5, 20, 182, 70, 176, 120, 182, 170, 176),
        ("line", "#a8d6e2", 5, 330, 200, 380, 194, 430, 200, 476, 194),
        ("line", "#ffffff", 12, 0, 244, 60, 238, 130, 246, 210, 238, 290, 246, 370, 238, 430, 246, 480, 240),
        ("box", "#ecd9ae", 0, 248, 480, 360, 0),
        ("disc", "#dcc590", 250, 336, 110, 9),
        *(("disc", "#dcc590", x, y, 5, 3) for x, y in ((60, 290), (110, 330), (420, 300), (380, 342), (30, 344))),
        ("figure", 246, 96, 246, 206, 206, 178, 190, 214, 222, 258, 204, 326, 272, 258, 288, 326),
        ("of", "surfboard"),
        ("disc", "#c7d0d6", 282, 194, 132, 25),
        ("disc", "#fdfdfb", 280, 190, 130, 23),
        ("line", "#e07a5f", 4, 158, 190, 402, 190),
        ("of", NOTHING),
        ("arm", 264, 142, 296, 178, 268, 206),
    ),
    "motorcycle": (
        ("box", "#e4e1dc", 0, 0, 480, 360, 0),
        ("box", "#cfcac2", 0, 292, 480, 360, 0),
        ("box", "#b08d62", 24, 72, 190, 82, 2),
        ("box", "#7f9aa8", 36, 40, 60, 72, 3),
        ("box", "#c46b4f", 70, 48, 104, 72, 3),
        ("box", "#8aa17b", 116, 34, 138, 72, 3),
        ("box", "#d9b65c", 148, 52, 178, 72, 3),
        ("box", "#c9b491", 300, 30, 460, 130, 4),
        ("line", "#77808a", 8, 330, 54, 330, 108),
        ("disc", "#77808a", 330, 52, 11, 11),
        ("line", "#77808a", 8, 372, 60, 372, 108),
        ("box", "#a5553f", 358, 44, 386, 62, 3),
        ("line", "#77808a", 7, 412, 50, 430, 108),
        ("of", "motorcycle"),
        ("disc", INK, 240, 274, 50, 50),
        ("disc", "#cfcac2", 240, 274, 32, 32),
        ("disc", INK, 420, 274, 50, 50),
        ("disc", "#cfcac2", 420, 274, 32, 32),
        ("line", "#8b939b", 9, 240, 274, 300, 280, 352, 280),
        ("line", "#8b939b", 10, 420, 274, 384, 186, 366, 176),
        ("line", INK, 10, 240, 274, 282, 224, 388, 212),
        ("box", "#6a737c", 296, 236, 356, 286, 10),
        ("line", "#a9b0b6", 4, 302, 248, 350, 248),
        ("line", "#a9b0b6", 4, 302, 260, 350, 260),
        ("disc", "#3f7d7a", 340, 208, 46, 24),
        ("line", INK, 18, 236, 212, 296, 214),
        ("disc", "#f6e7a8", 402, 198, 15, 15),
        ("line", INK, 8, 366, 176, 346, 170),
        ("disc", "#8b939b", 240, 274, 8, 8),
        ("disc", "#8b939b", 420, 274, 8, 8),
        ("of", NOTHING),
        ("figure", 126, 158, 104, 262, 118, 248, 168, 258, 160, 264, 156, 324, 76, 318, 40, 326),
        ("arm", 138, 208, 178, 232, 236, 238),
        ("line", "#8b939b", 9, 234, 238, 284, 250),
        ("disc", "#8b939b", 288, 251, 11, 11),
        ("disc", "#e4e1dc", 292, 252, 6, 5),
    ),
    "baseball": (
        ("box", "#bcd9e8", 0, 0, 480, 360, 0),
        ("box", "#dfe5e9", 0, 66, 480, 200, 0),
        *(
            (
                "disc",
                CROWD[(3 * row + 2 * seat + row * seat) % 5],
                14 + 32 * seat + 16 * (row % 2),
                90 + 32 * row,
                11,
                11,
            )
            for row in range(4)
            for seat in range(15)
        ),
        ("box", "#3f6f5a", 0, 196, 480, 232, 0),
        ("box", "#8fba77", 0, 230, 480, 360, 0),
        ("disc", "#d1a679", 240, 346, 210, 52),
        ("shape", "#ffffff", 262, 326, 306, 326, 306, 338, 284, 348, 262, 338),
        ("of", "baseball bat"),
        ("line", "#b98545", 9, 244, 166, 292, 112),
        ("line", "#b98545", 15, 276, 130, 330, 70),
        ("of", NOTHING),
        ("figure", 196, 112, 196, 216, 214, 200, 246, 164, 160, 266, 146, 322, 226, 266, 244, 322),
        ("arm", 210, 162, 232, 176, 250, 156),
        ("disc", "#ffffff", 410, 214, 11, 11),
        ("line", "#d0675a", 2, 405, 207, 408, 214, 405, 221),
        ("line", "#8fb3a2", 4, 430, 210, 462, 207),
        ("line", "#8fb3a2", 4, 430, 219, 454, 220),
    ),
}


def draw(name: str):
    """The picture of an activity (a Pillow image): a plain figure that says nothing of gender, and its things."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (SIZE[0] * FINER, SIZE[1] * FINER))
    canvas = ImageDraw.Draw(image)
    for _, (kind, *rest) in _owned(name):
        SHAPES[kind](canvas, *rest)
    return image.reduce(FINER)


def outlines(name: str) -> dict[str, np.ndarray]:
    """What the picture of an activity shows of the person and of the thing: (360, 480) booleans by name, what hides
    them taken away. A pixel is of whatever is at its middle."""
    from PIL import Image, ImageDraw

    owners = np.zeros((SIZE[1] * FINER, SIZE[0] * FINER), dtype=np.uint8)
    for owner, (kind, *rest) in _owned(name):
        alone = Image.new("L", (SIZE[0] * FINER, SIZE[1] * FINER))
        SHAPES[kind](ImageDraw.Draw(alone), *rest)  # no colour of a scene is black
        owners[np.asarray(alone) > 0] = CATEGORIES.get(owner, 0)
    middles = owners[FINER // 2 :: FINER, FINER // 2 :: FINER]
    return {thing: middles == number for thing, number in CATEGORIES.items() if (middles == number).any()}


def things(name: str) -> list[str]:
    """What the picture of an activity shows, by COCO's names; the person first."""
    shown = {owner for owner, _ in _owned(name)}
    return [thing for thing in CATEGORIES if thing in shown]


def _owned(name: str) -> Iterator[tuple[str, tuple]]:
    """Each shape of a scene, and of whom or what it is."""
    owner = NOTHING
    for kind, *rest in SCENES[name]:
        if kind == "of":
            (owner,) = rest
        else:
            yield PERSON if kind in ("figure", "arm") else owner, (kind, *rest)


def _fine(numbers: Iterable[float]) -> list[float]:
    return [FINER * number for number in numbers]


def _box(canvas, colour: str, left, top, right, bottom, radius) -> None:
    left, top, right, bottom, radius = _fine((left, top, right, bottom, radius))
    canvas.rounded_rectangle((left, top, right - 1, bottom - 1), radius, fill=colour)


def _disc(canvas, colour: str, x, y, half_width, half_height) -> None:
    canvas.ellipse(_fine((x - half_width, y - half_height, x + half_width, y + half_height)), fill=colour)


def _slice(canvas, colour: str, x, y, half_width, half_height, start, end) -> None:
    around = _fine((x - half_width, y - half_height, x + half_width, y + half_height))
    canvas.pieslice(around, start, end, fill=colour)


def _shape(canvas, colour: str, *numbers) -> None:
    canvas.polygon(_fine(numbers), fill=colour)


def _line(canvas, colour: str, width, *numbers) -> None:
    """A line through points (x, y, x, y, ...) with round joints and ends."""
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    for start, end in pairwise(points):
        canvas.line(_fine((*start, *end)), fill=colour, width=FINER * width)
    for x, y in points:
        _disc(canvas, colour, x, y, width / 2, width / 2)


def _figure(canvas, head_x, head_y, hip_x, hip_y, *limbs) -> None:
    """Head and hip, then the far arm (elbow, hand) and both legs (knee, foot); the near arm is a shape of its own.
    With a face, a cap, shoulders and shoes, so that a detector of real people sees one."""
    neck_x, neck_y, face_y = head_x + 0.1 * (hip_x - head_x), head_y + 46, head_y + 6
    far_arm, *legs = limbs[:4], limbs[4:8], limbs[8:]
    for leg in legs:
        _line(canvas, TROUSERS, 23, hip_x, hip_y, *leg)
        _line(canvas, SHOE, 14, leg[2] - 2, leg[3] + 6, leg[2] + 14, leg[3] + 7)
    _arm(canvas, neck_x - 20, neck_y + 2, *far_arm)
    _line(canvas, SKIN, 16, neck_x, neck_y - 6, head_x, face_y + 8)
    shoulders = (neck_x - 30, neck_y + 2, neck_x - 10, neck_y - 8, neck_x + 10, neck_y - 8, neck_x + 30, neck_y + 2)
    _shape(canvas, SHIRT, *shoulders, hip_x + 22, hip_y + 6, hip_x - 22, hip_y + 6)
    for side in (-1, 1):
        _disc(canvas, SHIRT, neck_x + 24 * side, neck_y + 6, 9, 9)
    _disc(canvas, SKIN, head_x, face_y, 15, 20)
    _slice(canvas, CAP, head_x, face_y - 2, 18, 21, 180, 360)
    for side in (-1, 1):
        _disc(canvas, FACE, head_x + 7 * side, face_y + 3, 2, 2.2)
    _line(canvas, FACE, 2, head_x - 5, face_y + 12, head_x, face_y + 14, head_x + 5, face_y + 12)


def _arm(canvas, *joints) -> None:
    """Shoulder, elbow and hand."""
    _line(canvas, SHIRT, 16, *joints[:4])
    _line(canvas, SKIN, 12, *joints[2:])
    _disc(canvas, SKIN, *joints[4:], 9, 9)


SHAPES = {"box": _box, "disc": _disc, "slice": _slice, "shape": _shape, "line": _line, "figure": _figure, "arm": _arm}
