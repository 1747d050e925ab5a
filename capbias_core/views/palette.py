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
