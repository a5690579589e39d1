"""What `tfrfast demo` shows, one module for each thing."""
