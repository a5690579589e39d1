"""Arguments, codecs, warnings and terminal output, for all modules."""
