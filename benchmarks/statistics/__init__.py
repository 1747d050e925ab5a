"""Are the intervals and verdicts true? Checked on data whose truth is known, and on people's captions."""
