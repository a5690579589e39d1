"""The columns of a batch, with a file for each class. Users import them from tfrfast."""
