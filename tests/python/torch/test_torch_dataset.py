"""The map-style Dataset and the BatchSampler, alone and in a DataLoader with workers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import image_records
import tfrfast as tfr
from mixed_files import mixture_of, write_sets
from record_files import flip_payload_byte
from tfrfast import _native
from torch_data import FEATURES, ID, NUM_RECORDS, asks_for_too_much, example, flat, ids

torch = pytest.importorskip("torch")
tt = pytest.importorskip("tfrfast.torch")

from torch.utils.data import ConcatDataset, DataLoader, Subset  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_data_loader(dataset: Any, sampler: Any, workers: int = 0, **options: Any) -> Any:
    return DataLoader(
        dataset, batch_sampler=sampler, collate_fn=tt.collate, num_workers=workers, **options
    )


def check_item(item: dict[str, Any], number: int) -> None:
    want = example(number)
    assert item["id"] == number
    assert item["dense"].tolist() == want["dense"]
    assert item["numbers"].tolist() == want["numbers"]
    assert (item["name"], item["words"]) == (want["name"], want["words"])


# ---- the dataset


def test_items_are_the_records(shards: list[str]) -> None:
    dataset = tt.Dataset(shards, features=FEATURES)
    assert len(dataset) == NUM_RECORDS
    for number in (0, 5, NUM_RECORDS - 1):
        check_item(dataset[number], number)
    check_item(dataset[-1], NUM_RECORDS - 1)
    check_item(pickle.loads(pickle.dumps(dataset))[7], 7)
    with pytest.raises(IndexError):
        dataset[NUM_RECORDS]
    items = dataset.__getitems__([9, 2, 2])
    for item, number in zip(items, [9, 2, 2], strict=True):
        check_item(item, number)
    check_item(items[-2], 2)
    assert [item["id"].item() for item in items[1:]] == [2, 2]


def test_slices_and_lists_give_several_records(shards: list[str]) -> None:
    dataset = tt.Dataset(shards)
    mask = [number in (3, 8) for number in range(NUM_RECORDS)]
    for index, expected in (
        (slice(2, 9, 3), [2, 5, 8]),
        ([4, -1, 4], [4, NUM_RECORDS - 1, 4]),
        (mask, [3, 8]),
        (torch.tensor([7, 1]), [7, 1]),
        ([], []),
    ):
        items = dataset[index]
        assert [item["id"].item() for item in items] == expected
        if expected:
            assert tt.collate(items)["id"].tolist() == expected
    records = tt.Dataset(shards, features=None)
    assert list(records[1:3]) == [records[1], records[2]] == [*tfr.Reader(shards)[1:3]]
    assert tt.Dataset(shards, transform=lambda item: item["id"].item())[:3] == [0, 1, 2]
    with pytest.raises(IndexError, match=f"Record {NUM_RECORDS} does not exist"):
        dataset[[NUM_RECORDS]]


def test_a_split_has_each_record_once(shards: list[str]) -> None:
    dataset = tt.Dataset(shards, features=ID)
    train, test = dataset.split(0.75, seed=1)
    parts = [[item["id"].item() for item in part[:]] for part in (train, test)]
    assert len(parts[0]) == round(NUM_RECORDS * 0.75)
    assert sorted(parts[0] + parts[1]) == list(range(NUM_RECORDS))
    assert parts == [sorted(part) for part in parts]
    again = dataset.split(0.75, seed=1)[0]
    assert [item["id"].item() for item in again[:]] == parts[0]
    assert [item["id"].item() for item in dataset.split(0.75, seed=2)[0][:]] != parts[0]
    for workers in (0, 2):
        sampler = tt.BatchSampler(len(train), 7, seed=3)
        batches = in_data_loader(train, sampler, workers)
        assert sorted(n for b in batches for n in b["id"].tolist()) == parts[0]
    # A split of a split, a pickle, and bytes.
    half, rest = pickle.loads(pickle.dumps(test)).split(0.5)
    both = [item["id"].item() for part in (half, rest) for item in part[:]]
    assert sorted(both) == parts[1]
    records = tt.Dataset(shards, features=None).split(0.75, seed=1)[1]
    assert records[-1] == tfr.Reader(shards)[parts[1][-1]]
    with pytest.raises(IndexError, match=f"Record {len(test)} does not exist"):
        test[len(test)]
    for wrong in (1.5, -0.1, float("nan"), "0.9"):
        with pytest.raises(ValueError, match="share is a number from 0 to 1"):
            dataset.split(wrong)


def test_rows_that_hold_rows_are_taken_out_whole() -> None:
    from tfrfast.torch.dataset import Samples

    inner = tt.Ragged(torch.arange(6), torch.tensor([0, 1, 3, 3, 6]))
    numbers = torch.arange(2)
    batch = tt.Batch({"x": tt.Ragged(inner, torch.tensor([0, 1, 4]))}, numbers, numbers == numbers)
    first, second = (row["x"] for row in Samples(batch))
    assert (first.values.tolist(), first.offsets.tolist()) == ([0], [0, 1])
    assert (second.values.tolist(), second.offsets.tolist()) == ([1, 2, 3, 4, 5], [0, 2, 2, 5])


def test_a_transform_gets_each_record(shards: list[str]) -> None:
    dataset = tt.Dataset(shards, features=FEATURES, transform=lambda item: item["id"] * 2)
    assert dataset[4] == 8
    loader = in_data_loader(dataset, tt.BatchSampler(NUM_RECORDS, 10, shuffle=False))
    assert flat(batch.tolist() for batch in loader) == list(range(0, 2 * NUM_RECORDS, 2))


def test_without_features_items_are_bytes(shards: list[str]) -> None:
    with tfr.Reader(shards) as reader:
        dataset = tt.Dataset(reader, features=None)
        assert dataset[3] == reader[3]
        loader = in_data_loader(dataset, tt.BatchSampler(NUM_RECORDS, 10, shuffle=False))
        assert flat(loader) == list(reader)
        assert tt.Dataset(reader, features=None, transform=len)[3] == len(reader[3])


def test_features_are_inferred_once(shards: list[str]) -> None:
    dataset = tt.Dataset(shards, features="infer")
    assert set(dataset.features) == set(FEATURES)
    check_item(dataset[6], 6)
    assert dataset[0]["numbers"].shape == (0,)


def test_other_datasets_and_collates_take_it(shards: list[str]) -> None:
    dataset = tt.Dataset(shards, features={**ID, "dense": FEATURES["dense"]})
    subset = Subset(dataset, [5, 9, 11])
    for loader in (
        DataLoader(subset, batch_size=3),
        DataLoader(subset, batch_size=3, collate_fn=tt.collate),
    ):
        [batch] = loader
        assert batch["id"].tolist() == [5, 9, 11]
        assert batch["dense"].shape == (3, 3)
    both = ConcatDataset([dataset, dataset])
    batches = list(DataLoader(both, batch_size=100, collate_fn=tt.collate))
    assert flat(batch["id"].tolist() for batch in batches) == [*range(NUM_RECORDS)] * 2


def test_damage_is_an_error_or_left_out(tmp_path: Path) -> None:
    records = [tfr.encode_example(example(number)) for number in range(10)]
    path = tmp_path / "damaged"
    with tfr.Writer(path) as writer:
        writer.write_batch(records)
    for number in (2, 9):
        flip_payload_byte(str(path), records, number)
    strict = tt.Dataset(path, features=ID)
    with pytest.raises(tfr.CorruptRecordError):
        strict[2]
    with pytest.raises(tfr.CorruptRecordError):
        strict.__getitems__([1, 2])
    skipping = tt.Dataset(path, features=ID, on_corruption="skip", index="memory")
    with pytest.raises(tfr.CorruptRecordError):
        skipping[2]
    sampler = tt.BatchSampler(10, 4, shuffle=False, remainder="pad")
    batches = list(in_data_loader(skipping, sampler))
    assert [len(batch.indices) for batch in batches] == [3, 4, 3]
    assert flat(ids(batches)) == [0, 1, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("features", [ID, None])
def test_a_stop_iteration_of_a_transform_does_not_end_the_epoch(
    shards: list[str], workers: int, features: Any
) -> None:
    dataset = tt.Dataset(shards, features=features, transform=asks_for_too_much)
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(dataset, batch_size=10, num_workers=workers))


# ---- the sampler


def test_a_sampler_takes_a_plan(shards: list[str]) -> None:
    plan = tfr.Plan(
        tfr.Shuffle(5, indices=range(50)), 7, num_records=100, rank=1, world=2, remainder="drop"
    )
    sampler = tt.BatchSampler(plan)
    assert list(sampler) == [plan.indices(0, step).tolist() for step in range(plan.steps)]
    assert list(sampler) == [plan.indices(1, step).tolist() for step in range(plan.steps)]
    rest = tt.BatchSampler(plan.rest_after(14))
    assert list(rest) == [plan.indices(0, step).tolist() for step in range(1, plan.steps)]
    assert len(list(rest)) == len(rest) == plan.steps
    for more in ({"batch_size": 3}, {"seed": 5}, {"shuffle": False}, {"rank": 0, "world": 1}):
        with pytest.raises(TypeError, match="A Plan says everything"):
            tt.BatchSampler(plan, **more)
    with pytest.raises(TypeError, match="batch_size is missing"):
        tt.BatchSampler(100)


def test_an_error_names_the_argument(shards: list[str]) -> None:
    with pytest.raises(TypeError, match="transform is a function of a record, not int"):
        tt.Dataset(["no such file"], transform=5)
    with pytest.raises(TypeError, match=r"features must be .*, not 3\.5"):
        tt.Dataset(shards, features=3.5)


def test_epochs_follow_each_other_or_are_chosen() -> None:
    sampler = tt.BatchSampler(30, 10, seed=1)
    orders = [list(sampler) for _ in range(3)]
    assert len({str(order) for order in orders}) == 3
    assert sampler.epoch == 2
    for epoch in (1, 1, 0):
        sampler.set_epoch(epoch)
        assert list(sampler) == orders[epoch]
    iter(sampler)  # no batch is requested
    assert list(sampler) == orders[1]
    next(iter(sampler))
    sampler.set_epoch(2)
    assert list(sampler) == orders[2]


def test_states_count_what_was_asked_for_unless_they_are_told() -> None:
    sampler = tt.BatchSampler(30, 10, seed=1)
    order = [list(sampler) for _ in range(2)]
    sampler.set_epoch(0)
    at_first = sampler.state_dict()
    batches = iter(sampler)
    [next(batches) for _ in range(3)]
    for told, rest in ((0, order[0]), (2, order[0][2:]), (3, []), (None, [])):
        other = tt.BatchSampler(30, 10, seed=1)
        other.load_state_dict(sampler.state_dict(told))
        assert [list(other), list(other)] == [rest, order[1]]
    with pytest.raises(ValueError, match="delivered is 4, but must be from 0 to 3"):
        sampler.state_dict(4)
    assert next(batches, None) is None
    other.load_state_dict(sampler.state_dict())
    assert list(other) == order[1]
    other.load_state_dict(at_first)
    assert list(other) == order[0]
    with pytest.raises(ValueError, match="its order is .* with the same arguments"):
        tt.BatchSampler(30, 10, seed=2).load_state_dict(at_first)
    with pytest.raises(ValueError, match="Not a state of BatchSampler: missing 'version'"):
        other.load_state_dict({"format": "tfrfast.torch.BatchSampler"})


def test_a_state_goes_on_with_other_ranks_and_batches() -> None:
    def samplers(batch_size: int, world: int) -> list[Any]:
        options: dict[str, Any] = {"seed": 1, "world": world, "remainder": "keep"}
        return [tt.BatchSampler(100, batch_size, rank=rank, **options) for rank in range(world)]

    begun = samplers(7, 2)
    batches = [iter(each) for each in begun]
    came = [number for each in batches for _ in range(3) for number in next(each)]
    state = begun[0].state_dict()
    assert begun[1].state_dict() == state
    assert state["position"] == len(came) == 42
    others = samplers(4, 3)
    for each in others:
        each.load_state_dict(state)
    assert sorted(came + [n for each in others for batch in each for n in batch]) == [*range(100)]
    assert len(list(others[0])) == len(others[0]) == 9  # the next epoch is whole


# ---- images and mixtures


@pytest.mark.skipif(not _native.DECODES_IMAGES, reason="tfrfast was built without image codecs")
def test_a_dataset_without_a_sampler_that_knows_the_epoch_refuses(tmp_path: Path) -> None:
    dataset = tt.Dataset(image_records.write_images(tmp_path), features=image_records.FEATURES)
    for batches in (DataLoader(dataset, collate_fn=tt.collate), dataset):
        with pytest.raises(ValueError, match="batch_sampler=tfrfast.torch.BatchSampler"):
            next(iter(batches))
    plain = tt.Dataset(dataset.reader, features={"own": tfr.Image()})
    assert plain[3]["own"].shape == (36, 52, 3)


def test_a_sampler_of_all_records_would_drop_the_weights(tmp_path: Path) -> None:
    mixture = mixture_of(write_sets(tmp_path))
    dataset = tt.Dataset(mixture, features=ID)
    with pytest.raises(TypeError, match=r"drop the weights .*BatchSampler\(mixture, 256\)"):
        tt.BatchSampler(len(dataset), 16)
    with pytest.raises(TypeError, match="drop the weights"):
        DataLoader(dataset, batch_size=16, shuffle=True)


@pytest.mark.parametrize("given", [{"seed": 0}, {"shuffle": True}, {"order": tfr.Shuffle()}])
def test_a_mixture_brings_its_own_order(tmp_path: Path, given: Any) -> None:
    mixture = mixture_of(write_sets(tmp_path))
    with pytest.raises(TypeError, match="a Mixture"):
        tt.Loader(mixture, 16, features=ID, **given)
    with pytest.raises(TypeError, match="a Mixture"):
        tt.IterableDataset(mixture, 16, features=ID, **given)
    with pytest.raises(TypeError, match="a Mixture"):
        tt.BatchSampler(mixture, 16, **given)
    with pytest.raises(TypeError, match="give nothing beside it"):
        tt.BatchSampler(tfr.Plan(mixture, 16), **given)
