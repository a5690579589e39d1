"""What `tfrfast bench`, `tfrfast demo` and benchmarks share: what is timed, and how it is shown."""
