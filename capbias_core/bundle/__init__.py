"""Results to take away as one file, and the same numbers made again from it."""
