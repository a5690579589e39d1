"""Damaged shards: a road names the damage, or returns every good record and says what it skipped."""

from __future__ import annotations

import random
from dataclasses import replace

from road import FRAMEWORK, SKIPS
from scene import Scene, outcome
from tfrecord_model import OVERHEAD
from truth import State, Truth


def damaged(chosen: random.Random, data: bytes, state: State) -> tuple[str, bytes]:
    """Damages a header, a payload, all records, the last record, or any bytes."""
    kinds = ["any"] if not state.records else ["header", "payload", "whole", "torn", "any"]
    kind = chosen.choice(kinds)
    changed = bytearray(data)
    begins, at = [], 0
    for record in state.records:
        begins.append(at)
        at += len(record) + OVERHEAD
    if kind in ("header", "payload"):
        offset = 0 if kind == "header" else 12
        for row in chosen.sample(range(len(begins)), chosen.randrange(1, min(3, len(begins)) + 1)):
            changed[begins[row] + offset] ^= 1 << chosen.randrange(8)
    elif kind == "whole":
        for begin in begins:
            changed[begin + 12] ^= 1
    elif kind == "torn":
        del changed[chosen.randrange(begins[-1] + 1, len(changed)) :]
    else:
        for _ in range(chosen.randrange(1, 5)):
            _damage_bytes(changed, chosen)
    return kind, bytes(changed)


def _damage_bytes(data: bytearray, chosen: random.Random) -> None:
    at = chosen.randrange(len(data) + 1)
    end = min(len(data), at + chosen.choice([1, 4, 12, 100, 5000]))
    kind = chosen.choice(["flip", "zero", "overwrite", "cut", "erase", "insert", "repeat"])
    if kind == "flip" and at < len(data):
        data[at] ^= 1 << chosen.randrange(8)
    elif kind == "zero":
        data[at:end] = bytes(end - at)
    elif kind == "overwrite":
        data[at:end] = chosen.randbytes(end - at)
    elif kind == "cut":
        del data[at:]
    elif kind == "erase":
        del data[at:end]
    elif kind == "insert":
        data[at:at] = chosen.randbytes(chosen.randrange(1, 40))
    elif kind == "repeat":
        data[at:at] = data[at:end]


def attack(scene: Scene) -> None:
    chosen = scene.chosen
    scene.set_up(most=50 if FRAMEWORK in scene.road.has else 200)
    if scene.compression is None and chosen.random() < 0.5:
        scene.check_exact()  # and makes the index of the good shards
    kinds = []
    for shard in chosen.sample(
        range(len(scene.files)), min(len(scene.files), chosen.randrange(1, 4))
    ):
        path, state = scene.files[shard], scene.states[shard]
        if scene.compression is not None:
            data = bytearray(path.read_bytes())
            _damage_bytes(data, chosen)
            # Nobody knows what is left. Whatever is returned was written.
            scene.states[shard] = replace(state, is_partial=True)
            kinds.append("compressed")
        else:
            kind, data = damaged(chosen, path.read_bytes(), state)
            scene.states[shard] = state.damaged(bytes(data))
            kinds.append(kind)
        path.write_bytes(data)
    skips = SKIPS in scene.road.has and chosen.random() < 0.6
    scene.case = f"{'skip' if skips else 'raise'}, {', '.join(kinds)}"
    options = {"on_corruption": "skip"} if skips else {}
    if not skips:
        said = outcome(lambda: scene.open())
        scene.judge(scene.truth(), said)
    else:
        held = []
        said = outcome(lambda: held.append(scene.open(options=options)) or held[0])
        whole = [replace(state, is_whole=True) for state in scene.states]
        scene.judge(Truth([[state] for state in whole]), said, in_order=scene.compression is None)
        opened = held[0] if held else None
        if said.error is None and opened is not None and opened.has_reported is not None:
            is_damaged = not all(state.is_whole or state.is_partial for state in scene.states)
            assert opened.has_reported() or not is_damaged, "damage was skipped without a word"
