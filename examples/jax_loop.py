"""JAX on any number of devices and processes: columns become device arrays.

Each process reads only its own rows.

python examples/jax_loop.py
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from mnist_data import PIXELS, features, write_digits

import tfrfast as tfr
import tfrfast.jax

BATCH_SIZE = 64
FEATURES = features("floats")


class Model(NamedTuple):
    weights: jax.Array
    bias: jax.Array


def rows_over_all_devices() -> NamedSharding:
    return NamedSharding(Mesh(jax.devices(), ("rows",)), PartitionSpec("rows"))


def make_batches(
    shards: list[str], sharding: NamedSharding, **options: object
) -> tfrfast.jax.Loader:
    """Gives global arrays. Each process adds the rows that it reads, each device holds some rows."""
    loader = tfr.Loader(
        shards,
        BATCH_SIZE // jax.process_count(),
        features=FEATURES,
        rank=jax.process_index(),
        world=jax.process_count(),
        **options,
    )
    return tfrfast.jax.Loader(loader, sharding)


def scores(model: Model, image: jax.Array) -> jax.Array:
    return image / 255 @ model.weights + model.bias


def loss(model: Model, image: jax.Array, label: jax.Array) -> jax.Array:
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores(model, image)), label[:, None], axis=1)
    return -chosen.mean()


@jax.jit
def step(model: Model, image: jax.Array, label: jax.Array) -> Model:
    slopes = jax.grad(loss)(model, image, label)
    return jax.tree.map(lambda value, slope: value - 0.1 * slope, model, slopes)


@jax.jit
def count_right(model: Model, image: jax.Array, label: jax.Array, valid: jax.Array) -> jax.Array:
    return ((scores(model, image).argmax(axis=1) == label) & valid).sum()


def train(shards: list[str], sharding: NamedSharding, epochs: int = 2) -> Model:
    """Trains on batches of one shape, so that nothing is compiled twice."""
    model = Model(jnp.zeros((PIXELS, 10)), jnp.zeros(10))
    batches = make_batches(shards, sharding, seed=7, remainder="drop")
    for _ in range(epochs):
        for batch in batches:
            model = step(model, **batch)
    return model


def accuracy(shards: list[str], sharding: NamedSharding, model: Model) -> float:
    """Returns the accuracy. The last batch is padded to full size. Its padding does not count."""
    right = total = 0
    for batch in make_batches(shards, sharding, shuffle=False, remainder="pad"):
        right += int(count_right(model, **batch, valid=batch.valid))
        total += int(batch.valid.sum())
    return right / total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", type=int, default=10_000)
    options = parser.parse_args()
    sharding = rows_over_all_devices()
    with tempfile.TemporaryDirectory() as temporary:
        digits = write_digits(Path(temporary), "floats", options.train)
        model = train(digits.train, sharding)
        print(f"{accuracy(digits.test, sharding, model):.1%} of the test right")


if __name__ == "__main__":
    main()
