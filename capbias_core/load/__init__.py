"""Files of captions and labels to tables, with all faults counted and named; nothing in a file is ever run.

To add a format, add its row to `FORMATS` (formats.py) or `SHAPES` (shapes.py), or register a `Format`.
"""
