"""Key files, which find records by the value of a feature."""
