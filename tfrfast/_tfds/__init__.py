"""What `tfr.tfds` knows of the folders that TensorFlow Datasets writes."""
