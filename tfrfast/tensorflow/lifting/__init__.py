"""Takes the parse out of map functions, so that it and then the rest run on whole batches."""
