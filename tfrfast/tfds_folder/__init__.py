"""Folders of TensorFlow Datasets: splits, files and features."""
