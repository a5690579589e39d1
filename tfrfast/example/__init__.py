"""tf.train.Examples: parsed into columns, and encoded from values."""
