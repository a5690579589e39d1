"""The tf.data source. Imported only on use: everything in here needs TensorFlow."""
