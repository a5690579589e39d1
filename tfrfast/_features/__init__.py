"""What becomes of a feature description: it is read, compiled, inferred, checked, remembered."""
