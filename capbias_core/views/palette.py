"""The colours of charts and pages. No import, since a page is drawn before charts are imported."""

# The ends of the diverging ramp, orange to blue, readable for the colour-blind on light and dark grounds.
ORANGE, BLUE = (194, 87, 12), (29, 95, 168)
MOST = 0.65  # its opacity at full strength: text on it keeps a contrast of 4.5 in both themes
GREY = "#8A94A3"
# Lines and points on either ground: lighter than the ramp's ends, with a contrast of 3 or more on both themes.
ORANGE_MARK, BLUE_MARK = "#D9701F", "#3B82D0"
MEASURED = BLUE_MARK
# With a contrast of 3 or more on both themes and, seen with any of the three kinds of colour blindness, apart from each
# other and from the grey of printed values. More colours would come too close.
COLOURS = (BLUE_MARK, ORANGE_MARK, "#965A96", "#D20F69", "#69690F")
# For style sheets of pages.
VARIABLES = f":root {{--cb-blue: {BLUE_MARK}; --cb-orange: {ORANGE_MARK}; --cb-grey: {GREY}}}"


def ramp(value: float, largest: float) -> str:
    """A signed value to a CSS colour: orange below 0, blue above, clear at 0, strongest at the largest value."""
    strength = min(1.0, abs(value) / largest) if largest > 0 else 0.0
    red, green, blue = ORANGE if value < 0 else BLUE
    return f"rgba({red},{green},{blue},{MOST * strength:.2f})"
