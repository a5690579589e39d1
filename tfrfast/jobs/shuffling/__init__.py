"""The steps of `tfr.shuffle`, a file for each, and the folder from which it resumes."""
