"""Random chains of the methods of tf.data, with checkpoints: TensorFlow's elements, in TensorFlow's
time.
"""

from __future__ import annotations

from scene import Scene


def attack(scene: Scene) -> None:
    from dataset_chains import check_a_chain  # TensorFlow starts in the round's own process

    scene.set_up(shards=3, may_pack=False)
    check_a_chain(scene.chosen, [str(file) for file in scene.files])
