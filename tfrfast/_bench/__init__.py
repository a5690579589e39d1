"""Measuring: what `tfrfast bench`, `tfrfast demo` and the benchmarks of the repository share."""
