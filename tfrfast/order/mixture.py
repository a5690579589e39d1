"""Several data sets in one order, each in exact proportion to its weight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, SupportsIndex, cast

from tfrfast import _native
from tfrfast.base.arguments import (
    IntegerArrayLike,
    as_number,
    epoch_number,
    integer,
    seed_number,
)
from tfrfast.base.refused_arguments import explains_arguments
from tfrfast.order.block_shuffle import BlockShuffle, shuffled
from tfrfast.order.counted import CountedBatching
from tfrfast.order.order import Order, record_numbers
from tfrfast.order.packed import Fill, Packed, fill_of
from tfrfast.order.pickling import rebuild
from tfrfast.order.shuffle import Shuffle
from tfrfast.order.source_weights import Weight, reduced
from tfrfast.reader import Reader
from tfrfast.storage.paths import Paths

__all__ = ["Mixture", "Weight", "Weights"]

_EXHAUSTED = ("repeat", "stop", "error")
_ARRANGEMENTS = ("permuted", "spread")


class Weights(NamedTuple):
    """Weights, and the first place where they apply."""

    epoch: int
    position: int
    weights: dict[str, int]


class Mixture(Order):
    """Several data sets in one order, each in exact proportion to its weight.

        sources = {"web": ("web/*", 7), "code": ("code/*", 3)}
        mixture = tfr.Mixture(sources, length=1_000_000, seed=1)
        for batch in tfr.Loader(mixture, 256, features=["tokens"]):
            train_step(batch["tokens"], batch.sources)

    A Mixture is an order and its records: a Loader and the adapters take a Mixture in place of a
    Reader. Every period holds each source exactly in proportion to its weight. The period is the
    sum of the weights without their common divisor: 10 records for 7 and 3. The rest of an epoch
    after whole periods is dealt by largest remainders. Each source has a permutation and epochs of
    its own.

    Args:
      sources: for each name a pair of data and weight. The data are a Reader, anything that Reader
        takes, or a number of records, which suffices for a Plan. Weights are ints, Fractions or
        floats; a float is read as its shortest decimal, so that 0.7 is 7/10. The period may be
        2**20 records at most.
      length: the positions of an epoch. By default the number of all sources' records (or, with a
        ByTokens, batches); with `on_exhausted="stop"`, the number before the first source ends.
        `Plan.positions` is the resulting number.
      on_exhausted: the behaviour after a source's last record. "repeat" begins the source's next
        epoch: over the whole run, each of its records comes once before any comes twice. "stop"
        ends the epoch. "error" raises ValueError here if `length` needs more records than exist.
        With "stop" and "error", sources begin again with each epoch.
      arrangement: "permuted" shuffles the sources in each period. "spread" spaces them as evenly as
        possible: with two sources, no prefix is more than half a record away from the exact share.
      seed: as in Shuffle.
      shuffle: the order of each source's records: True, False or a BlockShuffle.
      per_source: takes each batch from one source. Batches then come in the exact proportion. With
        a ByTokens this is always so.
      indices: the record numbers to use, for some names of sources.

    Record numbers count the sources end to end, in the given order, and `batch.sources` holds each
    row's source. The sources' Readers must have the same options.
    """

    @explains_arguments
    def __init__(
        self,
        sources: Mapping[str, tuple[Reader | Paths | int, Weight]],
        *,
        length: SupportsIndex | None = None,
        on_exhausted: Literal["repeat", "stop", "error"] = "repeat",
        arrangement: Literal["permuted", "spread"] = "permuted",
        seed: SupportsIndex = 0,
        shuffle: bool | BlockShuffle = True,
        per_source: bool = False,
        indices: Mapping[str, IntegerArrayLike] | None = None,
    ) -> None:
        if not isinstance(sources, Mapping) or not sources:
            raise TypeError(
                'sources must be a dict such as {"web": (reader, 7), "code": (other, 3)}.'
            )
        for name, source in sources.items():
            if not isinstance(source, tuple) or len(source) != 2:
                raise TypeError(
                    f"The source {name!r} must be a pair of data and weight: (reader, 7)."
                )
        for what, word, words in (
            ("on_exhausted", on_exhausted, _EXHAUSTED),
            ("arrangement", arrangement, _ARRANGEMENTS),
        ):
            if word not in words:
                raise ValueError(f"{what} is {word!r}, but must be one of {', '.join(words)}.")
        if on_exhausted == "error" and length is None:
            raise ValueError(
                'on_exhausted="error" needs a length: how many positions an epoch has.'
            )
        self._data = tuple(data for data, _ in sources.values())
        self.names = tuple(sources)
        self.seed = seed_number(seed)
        self.on_exhausted = on_exhausted
        self.arrangement = arrangement
        shuffled(shuffle)  # raises here if `shuffle` is wrong
        self.shuffle = shuffle
        self.per_source = bool(per_source)
        weights = reduced({name: weight for name, (_, weight) in sources.items()})
        self._segments = [(0, 0, weights)]
        self._readers = [None if _count(data) is not None else _reader(data) for data in self._data]
        self._sizes = [
            cast("int", _count(data)) if reader is None else len(reader)
            for data, reader in zip(self._data, self._readers, strict=True)
        ]
        self._indices = self._checked_indices(indices or {})
        self.length = None if length is None else integer("length", length, 0, _native.MAX_RECORDS)
        self._joined: Reader | None = None
        self._sources: tuple[CountedBatching | None, list[_native.Order]] | None = None
        self._made: tuple[int | CountedBatching, _native.Mixture] | None = None
        self._order_of(1)  # raises here if an argument is wrong

    def _checked_indices(self, indices: Mapping[str, IntegerArrayLike]) -> dict[str, Any]:
        unknown = set(indices) - set(self.names)
        if unknown:
            raise ValueError(f"indices are given for {_listed(unknown)}, which is not a source.")
        return {name: record_numbers(each) for name, each in indices.items()}

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # remembers derived objects

    @property
    def is_scattered(self) -> bool:  # type: ignore[override]
        return shuffled(self.shuffle).is_scattered

    @property
    def num_records(self) -> int:  # type: ignore[override]
        """The number of records of all sources."""
        return sum(self._sizes)

    @property
    def reader(self) -> Reader:
        """A reader of all sources' records, by the record numbers of batches."""
        if self._joined is None:
            self._joined = Reader._join(self._named_readers())
        return self._joined

    def _named_readers(self) -> dict[str, Reader]:
        """The reader of each source, by name."""
        pairs = zip(self.names, self._readers, strict=True)
        readers = {name: reader for name, reader in pairs if reader is not None}
        if missing := set(self.names) - set(readers):
            raise ValueError(
                f"{_listed(missing)} was given as a number of records, so it cannot be read."
            )
        return readers

    @property
    def weights(self) -> dict[str, int]:
        """The last weights, without their common divisor."""
        return dict(zip(self.names, self._segments[-1][2], strict=True))

    @property
    def segments(self) -> tuple[Weights, ...]:
        """All weights, with the first place where they apply."""
        return tuple(
            Weights(epoch, position, dict(zip(self.names, weights, strict=True)))
            for epoch, position, weights in self._segments
        )

    @explains_arguments
    def with_weights(
        self, weights: Mapping[str, Weight], *, epoch: SupportsIndex, position: SupportsIndex
    ) -> Mixture:
        """Returns this mixture with other weights from a position of an epoch on.

        Earlier positions stay the same. From there on, each source continues with the records that
        have not come yet. Weights may be 0, and replace other weights at the same place. A Loader's
        state holds its place.
        """
        if set(weights) != set(self.names):
            raise ValueError(f"weights must be given for each of {_listed(self.names)}.")
        at = epoch_number(epoch), integer("position", position, 0, _native.MAX_RECORDS)
        whole = reduced({name: weights[name] for name in self.names})
        earlier = self._segments[:-1] if self._segments[-1][:2] == at else self._segments
        return self._with_all_weights([*earlier, (*at, whole)])

    def _with_all_weights(self, segments: list[tuple[int, int, list[int]]]) -> Mixture:
        other = self._with_segments(segments)
        # Raises here if an argument is wrong. If positions are batches, the plan was made of
        # batches.
        if not self.per_source:
            other._order_of(1 if self._made is None else self._made[0])
        return other

    def _with_segments(self, segments: list[tuple[int, int, list[int]]]) -> Mixture:
        other = Mixture.__new__(Mixture)
        other.__dict__.update(self.__dict__)
        other._segments, other._made = segments, None
        return other

    @explains_arguments
    def counts(
        self,
        epoch: SupportsIndex,
        position: SupportsIndex,
        *,
        batch_size: SupportsIndex | CountedBatching | None = None,
    ) -> dict[str, int]:
        """Returns the number of records of each source before a place, from the beginning of the
        run.

        Takes constant time with `arrangement="spread"`, and the time of a period with "permuted" if
        the place is inside a period. `batch_size` must be given with `per_source`, and
        with a `ByTokens`, whose batches are then counted.
        """
        order = self._order_of(self._unit(batch_size))
        where = integer("position", position, 0, _native.MAX_RECORDS)
        counts = order.counts(self.seed, epoch_number(epoch), where)
        return dict(zip(self.names, counts, strict=True))

    def _native_order(self, num_records: int, batching: int | CountedBatching) -> _native.Order:
        return self._order_of(self._unit(batching))

    def _sample(self, num_records: int, count: int) -> list[int]:
        """Returns records of all sources, a few neighbours at the beginning of each."""
        numbers: list[int] = []
        begin = 0
        for name, size in zip(self.names, self._sizes, strict=True):
            chosen = self._indices.get(name)
            each = max(1, count // len(self.names))
            own = range(min(size, each)) if chosen is None else chosen[:each].tolist()
            numbers += [begin + number for number in own]
            begin += size
        return numbers

    def _unit(self, batching: SupportsIndex | CountedBatching | None) -> int | CountedBatching:
        """Returns the unit that goes to a rank in one piece: some rows, or a batch."""
        if batching is None:
            if self.per_source:
                raise TypeError(
                    "batch_size must be given for a Mixture with per_source=True, whose order "
                    "depends on it: give the batch size of the Loader or the Plan."
                )
            return 1
        if isinstance(batching, CountedBatching):
            if self.per_source and isinstance(batching, Packed):
                raise TypeError(
                    "Each pack comes from one source, and a batch mixes packs by weight: leave "
                    "per_source out."
                )
            batching._check(self.num_records)
            return batching
        rows = integer("batch_size", batching, 1, 2**31 - 1)
        return rows if self.per_source else 1

    def _fill(self, batching: Packed) -> Fill:
        """Returns the fill of the packs of an epoch, and of each source."""
        orders: Any = self._sources_of(batching)
        fills = {
            name: fill_of(order, batching) for name, order in zip(self.names, orders, strict=True)
        }
        weights = dict(zip(self.names, self._segments[0][2], strict=True))
        tokens = {name: weights[name] * fill.share for name, fill in fills.items()}
        whole = sum(tokens.values())
        counts = ("records", "pieces", "left_out", "cut", "split")
        return Fill(
            share=whole / sum(weights.values()),
            packs=self._length_for(batching, orders),
            sources=fills,
            token_shares={name: each / whole if whole else 0.0 for name, each in tokens.items()},
            **{name: sum(getattr(fill, name) for fill in fills.values()) for name in counts},
        )

    def _sources_of(self, unit: int | CountedBatching) -> list[_native.Order]:
        tokens = unit if isinstance(unit, CountedBatching) else None
        made = self._sources  # another thread may replace it meanwhile
        if made is None or made[0] != tokens:
            self._sources = made = tokens, [*self._make_sources(tokens)]
        return made[1]

    def _make_sources(self, tokens: CountedBatching | None) -> Iterator[_native.Order]:
        order = shuffled(self.shuffle)
        if tokens is not None and not isinstance(order, Shuffle):
            raise TypeError(
                f"{type(tokens).__name__} puts records together by their lengths, so a Mixture of "
                f"such batches has shuffle=True, not {self.shuffle!r}."
            )
        first = 0
        for name, size in zip(self.names, self._sizes, strict=True):
            chosen = self._indices.get(name)
            if tokens is not None:
                yield tokens._native_order(size, chosen, first)
            elif chosen is not None:
                yield _native.ChosenOrder(order._positions(len(chosen)), chosen, size)
            else:
                yield order._positions(size)
            first += size

    def _length_for(self, unit: int | CountedBatching, sources: list[_native.Order]) -> int:
        rows = 1 if isinstance(unit, CountedBatching) else unit
        first = self._segments[0][2]
        sizes = [source.positions for source in sources]
        # The core refuses weights of another number of sources.
        drawn = sum(size for size, weight in zip(sizes, first, strict=False) if weight)
        length = drawn if self.length is None else self.length
        if self.on_exhausted == "stop":
            return _native.Mixture.longest_without_repeats(sizes, first, rows, length)
        return length - length % rows

    def _order_of(self, unit: int | CountedBatching) -> _native.Mixture:
        made = self._made  # another thread may replace it meanwhile
        if made is None or made[0] != unit:
            sources = self._sources_of(unit)
            length = self._length_for(unit, sources)
            # A change at the end of an epoch applies at the beginning of the next epoch, and gives
            # way to a change there.
            places = [(e + 1, 0) if 0 < p == length else (e, p) for e, p, _ in self._segments]
            order = _native.Mixture(
                sources=sources,
                arrangement=self.arrangement,
                repeats=self.on_exhausted == "repeat",
                length=length,
                unit_rows=1 if isinstance(unit, CountedBatching) else unit,
                segments=[
                    (*place, weights)
                    for place, after, (*_, weights) in zip(
                        places, [*places[1:], None], self._segments, strict=True
                    )
                    if place != after
                ],
            )
            self._made = made = unit, order
        return made[1]

    def __hash__(self) -> int:
        return hash((self.names, self.seed, self.num_records))

    def _key(self) -> tuple[Any, ...]:
        chosen = {name: indices.tolist() for name, indices in self._indices.items()}
        options = (
            self.names,
            self.seed,
            self.on_exhausted,
            self.arrangement,
            self.shuffle,
            self.per_source,
        )
        return (*options, self._sizes, self.length, self._segments, chosen)

    def __repr__(self) -> str:
        parts = zip(self.names, self._sizes, self._segments[-1][2], strict=True)
        sources = ", ".join(f"{name!r}: ({size} records, {weight})" for name, size, weight in parts)
        return f"Mixture({{{sources}}}, seed={self.seed})"

    def __reduce__(self) -> tuple[object, ...]:
        parts = zip(self.names, self._data, self._readers, self._segments[0][2], strict=True)
        sources = {
            name: (data if reader is None else reader, weight)
            for name, data, reader, weight in parts
        }
        options = {
            "length": self.length,
            "on_exhausted": self.on_exhausted,
            "arrangement": self.arrangement,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "per_source": self.per_source,
            "indices": self._indices,
        }
        arguments = (sources, options, self._segments)
        return rebuild, (_native.ORDER_VERSION, _rebuilt, arguments, {})


def _rebuilt(
    sources: Any, options: dict[str, Any], segments: list[tuple[int, int, list[int]]]
) -> Mixture:
    return Mixture(sources, **options)._with_segments(segments)


def _count(data: Any) -> int | None:
    """Returns the number of records, if the data are given as a number."""
    if isinstance(data, (Reader, str, bytes)) or not hasattr(data, "__index__"):
        return None
    number = as_number("A number of records", data)
    return (
        None if number is None else integer("A number of records", number, 0, _native.MAX_RECORDS)
    )


def _reader(data: Any) -> Reader:
    return data if isinstance(data, Reader) else Reader(data)


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in sorted(names))
