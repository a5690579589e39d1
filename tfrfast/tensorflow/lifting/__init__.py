"""Lifts the parse out of map functions, so that parse and remainder run on whole batches."""
