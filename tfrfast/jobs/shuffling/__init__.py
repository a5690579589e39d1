"""What `tfr.shuffle` does, a file for each step, and the folder from which it resumes."""
