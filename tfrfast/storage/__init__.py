"""Paths, objects on a network, and the folder that keeps objects on a disk."""
