"""Key files, by which records are found by what one of their features holds."""
