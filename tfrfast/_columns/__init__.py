"""The columns of a batch, a file for each class. Users import them from tfrfast."""
