"""What `tfrfast bench`, `tfrfast demo` and the repository's benchmarks measure, how, and its pictures."""
