"""Are the intervals, verdicts and baselines true? Checked on data whose truth is known, and on people's captions."""
