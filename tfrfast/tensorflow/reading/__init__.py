"""Reads finished datasets of tf.data: where their records come from, and what is done with them."""
