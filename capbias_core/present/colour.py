"""One diverging ramp, orange to blue, readable for the colour-blind on light and dark grounds."""

ORANGE = (194, 87, 12)
BLUE = (29, 95, 168)
GREY = "#8A94A3"
# Lines and points on either ground: lighter than the ramp's ends, with a contrast of 3 or more on both themes.
MEASURED = "#3B82D0"
ORANGE_MARK = "#D9701F"
BLUE_MARK = "#3B82D0"

MOST = 0.65  # opacity at full strength: the text on it keeps a contrast of 4.5 in both themes


def ramp(value: float, largest: float) -> str:
    """A signed value to a CSS colour: orange below 0, blue above, clear at 0, strongest at the largest value."""
    strength = min(1.0, abs(value) / largest) if largest > 0 else 0.0
    red, green, blue = ORANGE if value < 0 else BLUE
    return f"rgba({red},{green},{blue},{MOST * strength:.2f})"
