"""The folders that TensorFlow Datasets writes: their splits, files and features."""
