"""Modules with which `tfrfast run` starts a program, to accelerate its datasets."""
