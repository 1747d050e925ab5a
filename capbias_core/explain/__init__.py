"""Which words carry the bias: over a whole set, in one caption, and in an edited one."""
