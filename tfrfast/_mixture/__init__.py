"""The parts of tfrfast.mixture."""
