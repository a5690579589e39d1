"""The orders as docs/permutation.md specifies them, in plain Python: slow, and right by reading."""

from __future__ import annotations

from typing import Any

MASK32 = 2**32 - 1
MASK64 = 2**64 - 1
VERSION = 1
FORMAT_KEY = (
    int.from_bytes(b"tfrfast ", "little"),
    int.from_bytes(b"record o", "little"),
)


def siphash24(key: tuple[int, int], words: list[int]) -> int:
    """SipHash-2-4 of 64-bit words, each as 8 little-endian bytes."""
    return siphash24_of(key, b"".join(word.to_bytes(8, "little") for word in words))


def siphash24_of(key: tuple[int, int], text: bytes) -> int:
    v = [
        key[0] ^ 0x736F6D6570736575,
        key[1] ^ 0x646F72616E646F6D,
        key[0] ^ 0x6C7967656E657261,
        key[1] ^ 0x7465646279746573,
    ]

    def rotate(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (64 - bits))) & MASK64

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK64
            v[2] = (v[2] + v[3]) & MASK64
            v[1] = rotate(v[1], 13) ^ v[0]
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = rotate(v[0], 32)
            v[2] = (v[2] + v[1]) & MASK64
            v[0] = (v[0] + v[3]) & MASK64
            v[1] = rotate(v[1], 17) ^ v[2]
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = rotate(v[2], 32)

    padded = text + bytes(7 - len(text) % 8) + bytes([len(text) % 256])
    for begin in range(0, len(padded), 8):
        word = int.from_bytes(padded[begin : begin + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def derive_key(purpose: int, seed: int, epoch: int) -> tuple[int, int]:
    head = VERSION | purpose << 32
    return (
        siphash24(FORMAT_KEY, [head, seed, epoch, 0]),
        siphash24(FORMAT_KEY, [head, seed, epoch, 1]),
    )


def exchange(items: list[Any], tweak: int) -> None:
    """Shuffles in place: a mixture's small period, or the records of a pack."""
    for i in range(len(items)):
        z = (tweak + (i + 1) * 0x9E3779B97F4A7C15) & MASK64
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
        j = (((z ^ (z >> 31)) >> 32) * (i + 1)) >> 32
        items[i], items[j] = items[j], items[i]


class Network:
    """A bijection of range(size), from a key of 128 bits and, for small bijections, a tweak of 64
    bits.
    """

    def __init__(self, size: int, key: tuple[int, int], rounds: int, tweak: int = 0) -> None:
        self.size = size
        last_bits = max(size - 1, 0).bit_length()
        self.right_bits = last_bits // 2
        self.rows = 1 << self.right_bits
        self.columns = -(-size // self.rows)
        self.keys = [siphash24(key, [r]) ^ tweak for r in range(rounds)]

    def hashed(self, half: int, round_key: int, bound: int) -> int:
        value = ((half ^ (round_key & MASK32)) * 0x85EBCA6B) & MASK32
        value = ((value ^ (value >> 15)) + (round_key >> 32)) & MASK32
        value = (value * 0xC2B2AE35) & MASK32
        return (value * bound) >> 32

    def forward(self, position: int) -> int:
        left, right = position >> self.right_bits, position % self.rows
        for r, key in enumerate(self.keys):
            if r % 2 == 0:
                left = (left + self.hashed(right, key, self.columns)) % self.columns
            else:
                right = (right + self.hashed(left, key, self.rows)) % self.rows
        return (left << self.right_bits) | right

    def backward(self, position: int) -> int:
        left, right = position >> self.right_bits, position % self.rows
        for r, key in reversed(list(enumerate(self.keys))):
            if r % 2 == 0:
                left = (left - self.hashed(right, key, self.columns)) % self.columns
            else:
                right = (right - self.hashed(left, key, self.rows)) % self.rows
        return (left << self.right_bits) | right

    def at(self, position: int) -> int:
        value = self.forward(position)
        while value >= self.size:
            value = self.forward(value)
        return value

    def inverse(self, record: int) -> int:
        value = self.backward(record)
        while value >= self.size:
            value = self.backward(value)
        return value


class ReferencePermutation(Network):
    def __init__(self, size: int, seed: int, epoch: int, purpose: int = 0) -> None:
        super().__init__(size, derive_key(purpose, seed, epoch), 24 if size < 2**16 else 12)


class ReferenceBlockShuffle:
    """Blocks in a random order, dealt to streams that mix them window by window."""

    def __init__(
        self,
        size: int,
        seed: int,
        epoch: int,
        block_records: int,
        window_blocks: int,
        streams: int,
    ) -> None:
        self.block, self.window, self.streams = block_records, window_blocks, streams
        self.num_blocks = -(-size // block_records)
        self.missing = self.num_blocks * block_records - size
        self.stream_blocks = (self.num_blocks - (self.missing > 0)) // streams if size else 0
        self.streamed = self.stream_blocks * streams * block_records
        self.tail = size - self.streamed
        self.list = ReferencePermutation(self.num_blocks, seed, epoch, purpose=1)
        self.key = derive_key(2, seed, epoch)
        self.tail_entry = self.stream_blocks * streams
        self.short_entry = self.list.inverse(self.num_blocks - 1) if self.missing else None

        self.slices: dict[int, int] = {}
        begin = 0
        for s in sorted(range(streams), key=self.slice_number):
            self.slices[s] = begin
            begin += self.tail // streams + (s < self.tail % streams)

    def slice_number(self, stream: int) -> tuple[int, int]:
        twos = (self.streams & -self.streams).bit_length() - 1
        low = stream % 2**twos
        return int(f"{low:0{twos}b}"[::-1], 2) if twos else 0, stream >> twos

    def mixed(self, size: int, stream: int, window: int, position: int) -> int:
        tweak = siphash24(self.key, [stream, window])
        return Network(size, self.key, 24, tweak).at(position)

    def at(self, position: int) -> int:
        stream, turn = position % self.streams, position // self.streams
        if position >= self.streamed:
            turn = (position - self.streamed) // self.streams
            return self.tail_record(self.slices[stream] + turn)
        ahead = stream * self.window // self.streams * self.block
        number = (turn + ahead) // (self.window * self.block)
        begin = number * self.window * self.block - ahead
        end = min(begin + self.window * self.block, self.stream_blocks * self.block)
        begin = max(begin, 0)
        mixed = begin + self.mixed(end - begin, stream, number, turn - begin)
        entry, offset = mixed // self.block * self.streams + stream, mixed % self.block
        if entry == self.short_entry and offset >= self.block - self.missing:
            return self.tail_record(self.tail + offset - (self.block - self.missing))
        return self.list.at(entry) * self.block + offset

    def tail_record(self, listed: int) -> int:
        records = self.block
        if self.short_entry is not None and self.short_entry >= self.tail_entry:
            short_begin = (self.short_entry - self.tail_entry) * self.block
            if listed >= short_begin + self.block - self.missing:
                listed += self.missing
            elif listed >= short_begin:
                records = self.block - self.missing
        entry = self.tail_entry + listed // self.block
        offset = self.mixed(records, self.streams, entry, listed % self.block)
        return self.list.at(entry) * self.block + offset
