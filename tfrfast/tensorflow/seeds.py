"""Seeds: drawn once, when the graph is built, so that all runs of the graph agree."""

from __future__ import annotations

import secrets

import tensorflow as tf

# TensorFlow's partner of a seed without a global seed.
DEFAULT_GLOBAL_SEED = 87654321


def draw_seed(seed: int | None) -> int:
    """Returns the user's seed, or the seed of `tf.random.set_seed`, or a random seed; 64 bits."""
    global_seed, own_seed = tf.compat.v1.random.get_seed(None if seed is None else seed % 2**31)
    if seed is not None and global_seed in (None, DEFAULT_GLOBAL_SEED):
        return seed % 2**64
    if global_seed is None:
        return secrets.randbits(63)
    return mixed(int(global_seed), int(own_seed if seed is None else seed))


def mixed(global_seed: int, own: int) -> int:
    """Returns the seed from an op's own seed and the seed of `tf.random.set_seed`."""
    return (global_seed * 0x9E3779B97F4A7C15 + own) % 2**64
