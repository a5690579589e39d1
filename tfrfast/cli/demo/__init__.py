"""The parts of `tfrfast demo`, one module for each."""
