"""What many modules need: arguments, paths, codecs, warnings, and output for a terminal."""
