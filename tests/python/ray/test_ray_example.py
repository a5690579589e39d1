"""examples/ray_train.py on small data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from example_scripts import load_example

pytest.importorskip("tfrfast.ray", exc_type=ModuleNotFoundError)
torch = pytest.importorskip("torch")

EPOCHS = 2


@pytest.mark.parametrize("lose_one", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_two_workers_train_as_one_process_does(
    local_ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lose_one: bool
) -> None:
    import ray.cloudpickle
    import ray.train

    example, data = load_example("ray_train"), load_example("mnist_data")
    for module in (example, data):  # the modules are not on the workers' path
        ray.cloudpickle.register_pickle_by_value(module)
    monkeypatch.setattr(example, "STEPS_BETWEEN_CHECKPOINTS", 3)
    digits = data.write_digits(tmp_path / "data", "floats", 360, 20)

    runs, workers = tmp_path / "runs", 2
    if lose_one:
        with pytest.raises(ray.train.TrainingFailedError):
            example.run(digits.train, runs, workers, EPOCHS, lose_one=True)
        workers = 1
    result = example.run(digits.train, runs, workers, EPOCHS, lose_one=False)
    assert result.metrics == {"epoch": EPOCHS, "step": 0, "world": workers}
    reports = result.metrics_dataframe[["epoch", "step", "world"]].to_numpy().tolist()
    # An epoch has six steps. The remaining worker continued after the third or the sixth step.
    assert reports[0] == [0, 3, 2]
    assert [0, 6, 1] not in reports
    with result.checkpoint.as_directory() as folder:
        trained = torch.load(Path(folder, "run.pt"), weights_only=False)["model"]
    expected = trained_here(example, data, digits.train).state_dict()
    assert expected.keys() == trained.keys()
    for name, values in expected.items():
        assert torch.allclose(values, trained[name], rtol=1e-4, atol=1e-6)


def trained_here(example: Any, data: Any, shards: list[str]) -> Any:
    """The model after the same epochs without Ray, in one process and without a break."""
    import tfrfast.torch

    model = example.make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = tfrfast.torch.Loader(
        shards, example.GLOBAL_BATCH, features=data.features("floats"), seed=7, rank=0, world=1
    )
    for _ in range(EPOCHS):
        for batch in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch["image"] / 255), batch["label"])
            loss.backward()
            optimizer.step()
    return model
