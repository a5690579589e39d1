"""The parts of `tfr.shuffle`, one file for each."""
