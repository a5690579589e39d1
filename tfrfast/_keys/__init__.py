"""Key files: how they are named, written and read."""
