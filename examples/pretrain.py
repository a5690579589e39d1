"""Pretraining on packed rows: three sources mixed 7 : 2 : 1, a small transformer, a change of hosts.

Records of any length fill rows of tokens. Attention stays inside a record, and a record's last
token has no target. The run is stopped, and continues on another number of hosts with the same
losses. The hosts are loaders of this process here; on a cluster, each process makes its own.

python examples/pretrain.py
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tfrfast as tfr

WEIGHTS = {"web": 7, "code": 2, "talk": 1}
RECORDS = {"web": (2_000, 40), "code": (400, 110), "talk": (600, 20)}  # and their median length
VOCABULARY = 64
TOKENS = 256  # of a row
ROWS = 20  # of all hosts together: two periods of the mixture
WIDTH = 32


def write_sources(folder: Path) -> dict[str, str]:
    """Writes token sequences. In each source, tokens advance by a step of its own."""
    source = np.random.default_rng(0)
    for number, (name, (records, median)) in enumerate(RECORDS.items()):
        lengths = source.lognormal(np.log(median), 0.8, records).astype(int).clip(1, 3 * TOKENS)
        with tfr.ShardedWriter(folder / name, num_shards=2) as writer:
            for length in lengths:
                ids = (
                    source.integers(VOCABULARY) + np.arange(length) * (2 * number + 1)
                ) % VOCABULARY
                writer.write(tfr.encode_example({"ids": ids}))
    return {name: f"{folder / name}-*" for name in RECORDS}


def make_loaders(sources: dict[str, str], hosts: int) -> list[tfr.Loader]:
    mixture = tfr.Mixture({name: (sources[name], WEIGHTS[name]) for name in sources}, seed=1)
    packs = tfr.Packed(TOKENS, rows=ROWS // hosts, lengths="ids", overlong="split")
    return [
        tfr.Loader(mixture, packs, features=["ids"], rank=host, world=hosts, remainder="drop")
        for host in range(hosts)
    ]


def batches(loaders: list[tfr.Loader], count: int) -> Any:
    """Yields the next batches: the rows of all hosts, put together."""
    iterators = [iter(loader) for loader in loaders]
    for _ in range(count):
        parts = [next(each) for each in iterators]
        yield tuple(
            jnp.concatenate([jnp.asarray(each, jnp.int32) for each in column])
            for column in zip(*((p["ids"], p.segments, p.positions) for p in parts), strict=True)
        )


def new_model() -> dict[str, jax.Array]:
    shapes = {
        "tokens": (VOCABULARY, WIDTH),
        "positions": (TOKENS, WIDTH),
        "attention": (WIDTH, 3 * WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }
    keys = jax.random.split(jax.random.key(0), len(shapes))
    return {
        name: 0.2 * jax.random.normal(key, shape)
        for key, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def loss(
    model: dict[str, jax.Array], ids: jax.Array, segments: jax.Array, positions: jax.Array
) -> Any:
    x = model["tokens"][ids] + model["positions"][positions]
    query, key, value = jnp.split(x @ model["attention"], 3, axis=-1)
    same = (segments[:, :, None] == segments[:, None, :]) & (segments[:, :, None] > 0)
    causal = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
    scores = jnp.where(same & causal, query @ key.swapaxes(1, 2) / WIDTH**0.5, -1e9)
    x = x + jax.nn.softmax(scores) @ value
    x = x + jax.nn.relu(x @ model["up"]) @ model["down"]
    logs = jax.nn.log_softmax(x[:, :-1] @ model["tokens"].T)
    has_target = (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] > 0)
    chosen = jnp.take_along_axis(logs, ids[:, 1:, None], axis=2)[..., 0]
    return -(chosen * has_target).sum() / has_target.sum()


@jax.jit
def step(model: dict[str, jax.Array], *batch: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    value, slopes = jax.value_and_grad(loss)(model, *batch)
    return jax.tree.map(lambda weight, slope: weight - 0.5 * slope, model, slopes), value


def train(loaders: list[tfr.Loader], model: Any, steps: int) -> tuple[Any, list[float]]:
    losses = []
    for batch in batches(loaders, steps):
        model, value = step(model, *batch)
        losses.append(float(value))
    return model, losses


def stop_and_resume(sources: dict[str, str], before: int, after: int, steps: int) -> list[float]:
    """Trains the first half of the steps on `before` hosts, and the rest on `after` hosts."""
    loaders = make_loaders(sources, before)
    model, losses = train(loaders, new_model(), steps // 2)
    state = loaders[0].state_dict()  # the same for each host
    others = make_loaders(sources, after)
    for loader in others:
        loader.load_state_dict(state)
    return losses + train(others, model, steps - steps // 2)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        sources = write_sources(Path(temporary))
        loaders = make_loaders(sources, 1)
        fill = loaders[0].plan.fill
        print(f"{fill.share:.1%} of the tokens are real, {fill.split} records are split")
        for name, share in fill.token_shares.items():
            print(f"  {name}: {WEIGHTS[name]} of 10 rows, {share:.1%} of the real tokens")
        losses = train(loaders, new_model(), options.steps)[1]
        resumed = stop_and_resume(sources, 4, 2, options.steps)
        print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}; on 4, then 2 hosts {resumed[-1]:.3f}")
        assert np.allclose(losses, resumed, rtol=1e-3)


if __name__ == "__main__":
    main()
