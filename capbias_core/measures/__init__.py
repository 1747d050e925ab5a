"""One module per measure: everything that is known about it; see registry.py and docs/extending.md."""
