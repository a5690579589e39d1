"""The parts of `tfrfast demo`, a module for each."""
