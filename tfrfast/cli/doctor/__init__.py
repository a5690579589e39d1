"""The measurements and the advice of `tfrfast doctor`."""
