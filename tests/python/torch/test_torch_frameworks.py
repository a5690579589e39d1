"""The usual loops of Lightning, Accelerate and torchdata.nodes over our loaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torch_data import FEATURES, ID, NUM_RECORDS, flat, ids

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def test_lightning_trains_saves_and_resumes(shards: list[str], tmp_path: Path) -> None:
    lightning = pytest.importorskip("pytorch_lightning")

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)
            self.seen: list[list[int]] = []

        def training_step(self, batch: Any, _: int) -> Any:
            self.seen += ids([batch])
            return self.layer(batch["dense"]).square().mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-6)

    def fit(steps: int, checkpoint: Path | None = None) -> tuple[Model, Any, Any]:
        trainer = lightning.Trainer(
            max_steps=steps,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
            default_root_dir=tmp_path,
        )
        model = Model()
        loader = tt.Loader(shards, 10, features=FEATURES, seed=3)
        trainer.fit(model, loader, ckpt_path=checkpoint, weights_only=False)
        return model, loader, trainer

    reference = tt.Loader(shards, 10, features=ID, seed=3)
    want = ids(reference) + ids(reference)
    whole, _, _ = fit(22)
    assert whole.seen == want
    first, _, trainer = fit(15)
    trainer.save_checkpoint(tmp_path / "saved")
    rest, loader, _ = fit(22, tmp_path / "saved")
    assert first.seen + rest.seen == want
    assert loader.epoch >= 1


def test_accelerate_leaves_a_loader_as_it_is(shards: list[str]) -> None:
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    model = torch.nn.Linear(3, 1)
    loader = tt.Loader(shards, 10, features=FEATURES, seed=3, device=accelerator.device)
    model, optimizer, prepared = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), lr=1e-6), loader
    )
    assert prepared is loader
    accelerator.register_for_checkpointing(loader)
    seen = []
    for batch in loader:
        optimizer.zero_grad()
        accelerator.backward(model(batch["dense"]).square().mean())
        optimizer.step()
        seen += ids([batch])
    assert sorted(flat(seen)) == list(range(NUM_RECORDS))
    moved = accelerate.utils.send_to_device(batch, torch.device("meta"))
    assert isinstance(moved, tt.Batch)
    assert moved["id"].device.type == "meta"


def test_a_loader_is_a_node_of_torchdata(shards: list[str]) -> None:
    nodes = pytest.importorskip("torchdata.nodes")
    want = tt.Loader(shards, 10, features=ID, seed=3)
    whole = [ids(want) for _ in range(2)]

    def made() -> Any:
        source = tt.Loader(shards, 10, features=ID, seed=3)
        return nodes.Loader(nodes.IterableWrapper(source))

    assert [ids(node) for node in [made()] for _ in range(2)] == [whole[0], whole[1]]
    node = made()
    batches = iter(node)
    got = ids(next(batches) for _ in range(4))
    state = node.state_dict()
    resumed = made()
    resumed.load_state_dict(state)
    assert got + ids(resumed) == whole[0]
