"""The pipelines, timing and charts of `tfrfast bench`, `tfrfast demo` and the benchmarks."""
