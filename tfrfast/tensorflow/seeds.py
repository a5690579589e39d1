"""Seeds: drawn once, when the graph is built, so that everyone who runs it agrees."""

from __future__ import annotations

import secrets

import tensorflow as tf

# What TensorFlow pairs with a seed when there is no global one.
DEFAULT_GLOBAL_SEED = 87654321


def draw_seed(seed: int | None) -> int:
    """The user's seed, or one that `tf.random.set_seed` implies, or a random one; 64 bits."""
    global_seed, own_seed = tf.compat.v1.random.get_seed(None if seed is None else seed % 2**31)
    if seed is not None and global_seed in (None, DEFAULT_GLOBAL_SEED):
        return seed % 2**64
    if global_seed is None:
        return secrets.randbits(63)
    return mixed(int(global_seed), int(own_seed if seed is None else seed))


def mixed(global_seed: int, own: int) -> int:
    """The seed that an op's own one and that of `tf.random.set_seed` give together."""
    return (global_seed * 0x9E3779B97F4A7C15 + own) % 2**64
