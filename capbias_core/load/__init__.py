"""Files of captions and labels to tables, with all faults counted and named; nothing in a file is ever run.

To add a format, add its row to `FORMATS` or `SHAPES` (formats.py), or register a `Format`.
"""
