"""Builds indexes of files and of objects, and exchanges them as text."""
