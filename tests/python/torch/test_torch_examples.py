"""examples/pytorch_loop.py on small data."""

from __future__ import annotations

from pathlib import Path

import pytest

from example_scripts import load_example

torch = pytest.importorskip("torch")


def test_pytorch_loop_learns_and_resumes(tmp_path: Path) -> None:
    example = load_example("pytorch_loop")
    digits = load_example("mnist_data").write_digits(tmp_path / "data", "floats", 1500, 300)

    model, loader = example.make_model(), example.make_loader(digits.train)
    untrained = example.accuracy(digits.test, model)
    checkpoint = example.train(loader, model, steps=10)
    resumed, rest = example.make_model(), example.make_loader(digits.train)
    resumed.load_state_dict(checkpoint["model"])
    rest.load_state_dict(checkpoint["input"])
    example.train(rest, resumed)
    whole = example.make_model()
    example.train(example.make_loader(digits.train), whole)
    for ours, theirs in zip(resumed.parameters(), whole.parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    for _ in range(4):
        example.train(rest, resumed)
    assert example.accuracy(digits.test, resumed) > untrained + 0.2

    images = [batch["image"] for batch in example.make_loader(digits.train)]
    noisy = [batch["image"] for batch in example.in_processes(digits.train, 2)]
    alone = [batch["image"] for batch in example.make_loader(digits.train, transform=example.noisy)]
    assert (len(images), len(noisy)) == (23, 24)
    for image, through, here in zip(images, noisy, alone, strict=False):
        assert torch.equal(through, here)
        assert 0.9 < (through - image).std() < 1.1
