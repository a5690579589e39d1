"""The page of `tfrfast view`: a data set in a browser."""
