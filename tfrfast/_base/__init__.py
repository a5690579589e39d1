"""What the modules above share: arguments, paths, codecs, warnings, and output for a terminal."""
