"""Reads finished datasets of tf.data: the source of their records, and the calls on them."""
