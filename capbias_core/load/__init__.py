"""Files of captions and labels to tables, with all faults counted and named; nothing in a file is ever run.

To add a format, write its file here: a module with `READERS` is discovered (see parsed.py).
"""




