"""Why TensorFlow does the work: each reason has a chain with it, and each remedy a chain that
follows it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tfrfast as tfr
from example_files import write_examples
from map_functions import NOT_LIFTED, popped

tf = pytest.importorskip("tensorflow")

SOURCES = Path(tfr.__file__).parent / "tensorflow"
Chain = Callable[[list[str]], Any]
DATA = tf.data.Dataset
AUTOTUNE = tf.data.AUTOTUNE
ID = {"id": tf.io.FixedLenFeature([], tf.int64)}
IN_THE_GRAPH = tf.Variable(2, dtype=tf.int64)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    files = write_examples(tmp_path_factory.mktemp("examples"), [20, 0, 11])
    tfr.Reader(files).close()
    return files


def ours(files: list[str], **options: Any) -> Any:
    return tfr.TFRecordDataset(files, **options)


def theirs(files: list[str], **options: Any) -> Any:
    return tf.data.TFRecordDataset(files, **options)


def names(files: list[str]) -> Any:
    return DATA.from_tensor_slices(files)


def turns(files: list[str]) -> Any:
    """Interleaved files."""
    return names(files).interleave(tf.data.TFRecordDataset, 2)


def one(record: Any) -> Any:
    return tf.io.parse_single_example(record, ID)


def several(batch: Any) -> Any:
    return tf.io.parse_example(batch, ID)["id"] + 1


def printed(record: Any) -> Any:
    tf.print(one(record)["id"], output_stream="file:///dev/null")
    return one(record)


def parsing(**specs: Any) -> Any:
    def parse(record: Any) -> Any:
        parsed = tf.io.parse_single_example(record, specs)
        return parsed if len(specs) > 1 else parsed[next(iter(specs))]

    return parse


def mapped(function: Any, *more: Any) -> Chain:
    def chain(files: list[str]) -> Any:
        dataset = ours(files).map(function)
        for each in more:
            dataset = dataset.map(each)
        return dataset.batch(8)

    return chain


def unlifted(name: str) -> Chain:
    return mapped(NOT_LIFTED[name])


def inside(open_file: Any) -> Chain:
    return lambda files: names(files).interleave(open_file, 2).batch(8)


def wide(record: Any) -> Any:
    return tf.one_hot(one(record)["id"], 10_000)


NUMBERS = parsing(numbers=tf.io.RaggedFeature(tf.int64))
DENSE = parsing(dense=tf.io.FixedLenFeature([3], tf.float32), **ID)


def zipped(*datasets: Any) -> Any:
    return DATA.zip(datasets)


def shared(files: list[str]) -> Any:
    shuffled = theirs(files).shuffle(9)
    return zipped(shuffled.batch(8), shuffled.batch(8))


def waiting(record: Any) -> Any:
    parsed = one(record)
    with tf.control_dependencies([parsed["id"]]):
        return tf.constant(1)


@tf.function(jit_compile=True)
def compiled(parsed: Any) -> Any:
    return parsed["id"] + 1


def split(record: Any) -> Any:
    none: Any = tf.constant([], tf.string)
    return tf.raw_ops.ParseExampleV2(
        serialized=record,
        names=none,
        sparse_keys=none,
        dense_keys=none,
        ragged_keys=["numbers"],
        dense_defaults=[],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[tf.int64],
        ragged_split_types=[tf.int64],
        dense_shapes=[],
    ).ragged_row_splits[0]


def of_sparse(record: Any) -> Any:
    return parsing(numbers=tf.io.VarLenFeature(tf.int64))(record)


def of_any_rank(record: Any) -> Any:
    text = tf.io.serialize_sparse(of_sparse(record))
    return tf.SparseTensor(*tf.raw_ops.DeserializeSparse(serialized_sparse=text, dtype=tf.int64))


def cut_short(files: list[str]) -> str:
    path = Path(files[0] + "-short")
    path.write_bytes(Path(files[0]).read_bytes()[:-20])
    return str(path)


def exponential(parsed: Any) -> Any:
    return tf.exp(parsed["dense"][0]) > 1


TABLE = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, 0, -1, -2)


@tf.function
def in_a_branch(record: Any) -> Any:
    number = one(record)["id"]
    if number > 3:
        tf.print(number, output_stream="file:///dev/null")
    return number


def in_a_graph(chain: Callable[[list[str], Any], Any]) -> Chain:
    """Explains a chain with a number that only the graph knows."""

    def explained(files: list[str]) -> Any:
        with tf.Graph().as_default():
            return tfr.explain(chain(files, tf.compat.v1.placeholder(tf.int64, [])))

    return explained


def in_parts(
    files: list[str], cycle: int = 1, skip: int = 3, take: int = 5, shuffled: bool = False
) -> Any:
    numbers = [np.full(len(files), each, np.int64) for each in (skip, take)]
    parts = DATA.from_tensor_slices((files, *numbers))
    parts = parts.shuffle(3) if shuffled else parts
    return parts.interleave(lambda name, skip, take: theirs(name).skip(skip).take(take), cycle)


def inflated_and_shuffled(files: list[str]) -> Any:
    inflated(files, "large")
    with mock.patch("tfrfast._native.inflated_bytes", return_value=1):
        return tfr.explain(
            theirs(files[0] + "large.gz", compression_type="GZIP").shuffle(9).batch(8)
        )


def inflated(files: list[str], name: str = "small") -> Any:
    path = files[0] + name + ".gz"
    with tfr.Writer(path, compression="GZIP") as writer:
        writer.write(b"record")
    return ours(path, compression_type="GZIP").cache()


def printing_name(name: Any) -> Any:
    tf.print(name, output_stream="file:///dev/null")
    return theirs(name)


def from_offset(name: Any) -> Any:
    made = tf.raw_ops.TFRecordDatasetV2(
        filenames=name,
        compression_type="",
        buffer_size=0,
        byte_offsets=tf.zeros([1], tf.int64) + tf.cast(tf.strings.length(name) * 0, tf.int64),
    )
    return tf.data.experimental.from_variant(made, tf.TensorSpec([], tf.string))


@tf.function(jit_compile=True)
def compiled_sum(number: Any) -> Any:
    return number + 1


def compiled_length(record: Any) -> Any:
    return compiled_sum(tf.strings.length(record))


#: By reason: a chain for which explain() gives it, and a chain that follows the advice, if any.
REASONS: dict[str, Chain | tuple[Chain, Chain]] = {
    # of whole datasets
    "its datasets share a shuffle(), to which tfrfast does not give several orders": (
        shared,
        lambda files: zipped(*(theirs(files).shuffle(9).batch(8) for _ in range(2))),
    ),
    "a cache() in memory keeps one order of a shuffle() for all datasets that are made of it": (
        lambda files: theirs(files).shuffle(9).cache().batch(8),
        lambda files: theirs(files).cache().shuffle(9).batch(8),
    ),
    "it joins datasets that gain nothing by themselves": lambda files: zipped(
        theirs(files), theirs(files)
    ),
    "it reads no TFRecord files": lambda _: DATA.range(3),
    "zip() joins datasets that gain nothing by themselves": lambda _: zipped(
        DATA.from_tensors(1), DATA.from_tensors(2)
    ),
    "only TensorFlow's own reader can read the files": (
        lambda files: ours(["ram://" + each for each in files]).batch(8),
        lambda files: ours(files).batch(8),
    ),
    "TensorFlow's own reader reads for it, so that it finds in each run what it has written": lambda files: (
        ours(files).batch(8).snapshot(files[0] + "-kept")
    ),
    "it writes its files again in each run": (
        lambda files: ours(files).shuffle(9).snapshot(files[0] + "-kept"),
        lambda files: ours(files).batch(8).prefetch(1),
    ),
    # of functions that are not lifted
    "tfrfast does not lift a parse in a graph": in_a_graph(lambda files, _: mapped(one)(files)),
    "its maps cannot be made one function": (
        mapped(one, compiled),
        mapped(lambda record: one(record)["id"] + 1),
    ),
    "tfrfast does not lift results other than tensors of a known rank": mapped(of_any_rank),
    "tfrfast does not filter sparse tensors": lambda files: (
        ours(files).map(of_sparse).filter(lambda _: True).batch(8)
    ),
    "floats of a filter() may differ in their last bits": lambda files: (
        ours(files).map(DENSE).filter(exponential).batch(8)
    ),
    "tfrfast does not lift steps of several values": (
        unlifted("steps of several values"),
        mapped(parsing(numbers=tf.io.FixedLenSequenceFeature([], tf.int64, True)), tf.size),
    ),
    "tfrfast does not lift the row splits of one record": (mapped(split), mapped(NUMBERS, tf.size)),
    "it parses features that only TensorFlow can parse": mapped(
        parsing(id=tf.io.FixedLenFeature([1 << 50], tf.int64))
    ),
    "the keys, the shapes or the defaults of the parse are not constants": unlifted("keys"),
    "it does not parse Examples": (
        unlifted("unused"),
        lambda files: ours(files).batch(8).map(tf.strings.length),
    ),
    "tfrfast does not lift two parses": (unlifted("twice"), mapped(popped)),
    "it changes the record before it parses it": unlifted("changed"),
    "tfrfast does not lift a parse of other records, or by an op of TensorFlow 1": unlifted(
        "as a SequenceExample"
    ),
    "tfrfast does not lift a parse beside other uses of the record": unlifted("with the record"),
    "it does something before or after the parse by control dependencies": mapped(waiting),
    "tfrfast does not lift a variant": mapped(
        lambda record: tf.raw_ops.TensorListReserve(
            element_shape=-1,
            num_elements=tf.cast(one(record)["id"], tf.int32),
            element_dtype=tf.int64,
        )
    ),
    "tfrfast does not pad rows of different shapes that are made one by one": lambda files: (
        ours(files).map(lambda record: tf.range(one(record)["id"])).padded_batch(8)
    ),
    "looks into a table that may change between two rows": mapped(
        lambda r: TABLE.lookup(one(r)["id"])
    ),
    "reads a variable, which may change between two rows": mapped(
        lambda r: one(r)["id"] + IN_THE_GRAPH
    ),
    "handles datasets, variables or tables, which tfrfast does not lift": mapped(
        lambda r: DATA.range(one(r)["id"]).reduce(np.int64(0), lambda a, b: a + b)
    ),
    "draws random numbers from a seed, in the order of the records": unlifted("random with a seed"),
    "must run for each record, in their order": unlifted("printing"),
    "calls the op PrintV2, which must run": mapped(in_a_branch),
    # of plans
    "its batches are too large to be made whole": (
        lambda files: ours(files).map(wide).batch(4096),
        lambda files: ours(files).map(wide).batch(16),
    ),
    'a record that on_corruption="skip" leaves out makes a batch too short': lambda files: (
        ours(files, on_corruption="skip").shuffle(9).batch(8, drop_remainder=True)
    ),
    "it handles elements one by one": (
        lambda files: ours(files).enumerate(),
        lambda files: ours(files).batch(8).enumerate(),
    ),
    "it makes elements of each element": (
        lambda files: ours(files).flat_map(DATA.from_tensors).batch(8),
        lambda files: tfr.Loader(tfr.Steps(files, along=["numbers"]), 8).to_tf_dataset(),
    ),
    "map() before it makes single elements": (
        mapped(tf.strings.length),
        lambda files: ours(files).batch(8).map(tf.strings.length),
    ),
    "num_parallel_reads is known only in the graph": (
        lambda files: ours(files, num_parallel_reads=IN_THE_GRAPH).batch(8),
        lambda files: ours(files, num_parallel_reads=2).batch(8),
    ),
    "fewer than 16 rows of this kind cost less one by one": lambda files: (
        theirs(files).map(NUMBERS).padded_batch(8)
    ),
    "tfrfast does not plan it without a batch() of strings before it": lambda files: (
        ours(files).batch(8).parse_example(ID).rebatch(4)
    ),
    "drop_remainder=True before it leaves records out": lambda files: (
        ours(files).batch(3, drop_remainder=True).rebatch(2)
    ),
    "it has no rows": in_a_graph(lambda files, _: ours(files).batch(0)),
    "tfrfast does not plan a batch() of batches": lambda files: ours(files).batch(8).batch(2),
    'on_corruption="skip" changes whose turn it is': (
        lambda files: ours(
            DATA.list_files(files, seed=1), on_corruption="skip", num_parallel_reads=2
        ).batch(8),
        lambda files: (
            ours(DATA.list_files(files, seed=1), on_corruption="skip").shuffle(9).batch(8)
        ),
    ),
    "interleaved files are missing or damaged": (
        lambda files: ours(
            names([*files, files[0] + "-none"]).shuffle(3), num_parallel_reads=2
        ).batch(8),
        lambda files: ours(names(files).shuffle(3)).shuffle(9).batch(8),
    ),
    "its elements are made row by row": lambda files: (
        theirs(files).map(lambda r: tf.cond(one(r)["id"] > 3, lambda: 1, lambda: 2)).enumerate()
    ),
    "its elements are too large for blocks": lambda files: (
        theirs(files).map(lambda r: tf.tile(wide(r), [20])).enumerate()
    ),
    "tfrfast does not pad what filter() lets through": (
        lambda files: ours(files).map(NUMBERS).filter(lambda _: True).padded_batch(8),
        lambda files: ours(files).batch(8).parse_example(ID),
    ),
    "filter() before it makes single elements": (
        lambda files: ours(files).map(printed).filter(lambda _: True).batch(8),
        lambda files: ours(files).batch(8).parse_example(ID),
    ),
    "tfrfast does not batch rows of different shapes that filter() lets through": lambda files: (
        ours(files).map(NUMBERS).filter(lambda x: tf.size(x) > 1).batch(1)
    ),
    "tfrfast does not make blocks of components without values, or of any shape": lambda files: (
        theirs(files).map(lambda r: tf.zeros([0]) + tf.cast(one(r)["id"], tf.float32)).enumerate()
    ),
    "there are no files": lambda _: theirs([]).shuffle(9),
    "only TensorFlow can read names with such a scheme": lambda files: theirs(
        "ram://" + files[0]
    ).batch(8),
    "tfrfast does not interleave parts of files": (
        lambda files: in_parts(files, 2).batch(8),
        lambda files: in_parts(files, 2, 0, -1).shuffle(9).batch(8),
    ),
    "files that are read in part are missing or damaged": lambda files: (
        in_parts([*files, cut_short(files)]).shuffle(9).batch(8)
    ),
    "tfrfast does not plan parts of files with records between them": lambda files: (
        in_parts(files).shuffle(9).batch(8)
    ),
    "its files come in a random order": (
        lambda files: in_parts(files, 1, 0, -1, shuffled=True).batch(8),
        lambda files: in_parts(files, 1, 0, -1, shuffled=True).shuffle(9).batch(8),
    ),
    "tfrfast does not interleave so many repeated files": (
        lambda files: names(files).repeat().interleave(theirs, 2).batch(8),
        lambda files: turns(files).repeat().batch(8),
    ),
    "nothing is made of single elements": lambda files: (
        theirs(files).enumerate().map(lambda _, record: one(record)).batch(8)
    ),
    "elements come one by one": (
        lambda files: theirs(files).take(3),
        lambda files: theirs(files).take(30).batch(8),
    ),
    "takes single elements": lambda files: theirs(files).map(printed).enumerate(),
    "cannot be put after what is planned": lambda files: (
        theirs(files).batch(8).apply(tf.data.experimental.dense_to_sparse_batch(2, [8]))
    ),
    "takes elements one by one": lambda files: theirs(files).shuffle(9).window(3),
    "a batch of fewer than 8 rows gains nothing": lambda files: theirs(files).batch(2),
    "cache() keeps what map() made, and later calls are made of it in each epoch": lambda files: (
        theirs(files).map(one).cache().repeat(2).enumerate()
    ),
    "ignore_errors() after it leaves out single elements": lambda files: (
        theirs(files).map(one).batch(8).ignore_errors()
    ),
    "an argument is known only in the graph": (
        in_a_graph(lambda files, number: ours(files).batch(number)),
        in_a_graph(lambda files, _: ours(files).batch(2)),
    ),
    "tfrfast does not plan it after batch()": lambda files: (
        ours(files).batch(8).filter(lambda _: True)
    ),
    "tfrfast does not shuffle batches": (
        lambda files: ours(files).batch(8).shuffle(3),
        lambda files: ours(files).shuffle(3).batch(8),
    ),
    "it leaves out what fails": (
        lambda files: ours(files).batch(8).ignore_errors(),
        lambda files: ours(files, on_corruption="skip").batch(8),
    ),
    "it makes single elements": lambda files: ours(files).batch(8).unbatch(),
    "the number of the shard is not known here": in_a_graph(
        lambda files, _: ours(files).shard(2, 2)
    ),
    "it counts what filter() lets through": lambda files: (
        ours(files).filter(lambda _: True).take(1)
    ),
    "a map() before it prints each element": (
        lambda files: ours(files).map(printed).skip(1),
        lambda files: ours(files).skip(1).map(printed),
    ),
    "tfrfast does not deal batches": (
        lambda files: ours(files).batch(4).shard(2, 1),
        lambda files: ours(files).shard(2, 1).batch(4),
    ),
    "it counts batches without errors": lambda files: (
        ours(files, on_corruption="skip").batch(4).skip(1)
    ),
    "tfrfast does not count records of all repetitions": lambda files: (
        ours(files).repeat(2).skip(1)
    ),
    "tfrfast does not repeat what filter() lets through": lambda files: (
        ours(files).filter(lambda _: True).repeat(2)
    ),
    "tfrfast does not repeat batches twice": lambda files: ours(files).batch(4).repeat(2).repeat(2),
    "the seed is known only in the graph": in_a_graph(
        lambda files, number: turns(files).shuffle(9, seed=number).batch(8)
    ),
    "tfrfast does not shuffle twice, and the shuffle() before it is exact": (
        lambda files: ours(files).shuffle(3).shuffle(3),
        lambda files: ours(files).shuffle(3),
    ),
    "tfrfast does not shuffle only some records of interleaved files": (
        lambda files: turns(files).shard(2, 1).shuffle(9).batch(8),
        lambda files: turns(files).shuffle(9, seed=1).shard(2, 1).batch(8),
    ),
    "tfrfast does not plan features that only TensorFlow can parse": lambda files: (
        ours(files)
        .batch(8)
        .apply(
            tf.data.experimental.parse_example_dataset(
                {"none": tf.io.FixedLenSequenceFeature([0], tf.int64, True)}
            )
        )
    ),
    "records are decoded already": lambda files: (
        ours(files)
        .map(parsing(name=tf.io.FixedLenFeature([], tf.string)))
        .batch(8)
        .parse_example(ID)
    ),
    "it writes a file": lambda files: ours(files).cache(files[0] + "-cache").batch(8),
    "tfrfast does not take parts of an order of files that cache() keeps": lambda files: (
        ours(DATA.list_files(files, seed=1)).cache().take(9)
    ),
    "it keeps records that would be inflated again in each epoch": inflated,
    "it keeps what map() or filter() made": (
        lambda files: ours(files).map(one).cache(),
        lambda files: ours(files).cache().map(one).batch(8),
    ),
    "it keeps what the plan gave the first time": lambda files: ours(files).batch(8).cache(),
    "TensorFlow says at the end whether there are so many elements": lambda files: (
        theirs(files).apply(tf.data.experimental.assert_cardinality(30)).shuffle(9).batch(8)
    ),
    "its parse cannot be taken out": (
        lambda files: ours(files).batch(4).map(lambda e: (several(e), e)),
        lambda files: ours(files).batch(4).parse_example(ID),
    ),
    "tfrfast does not shuffle again what has one order in all iterations": lambda files: (
        theirs(files).shuffle(9, reshuffle_each_iteration=False).shuffle(9).batch(8)
    ),
    "each iteration shuffles other records": (
        lambda files: names(files).shuffle(3).interleave(theirs, 2).skip(3).shuffle(9).batch(8),
        lambda files: names(files).shuffle(3).interleave(theirs, 2).shuffle(9).skip(3).batch(8),
    ),
    "tfrfast does not shuffle compressed files that do not fit into memory": inflated_and_shuffled,
    "a padded shape is known only in the graph": (
        in_a_graph(lambda files, number: ours(files).map(NUMBERS).padded_batch(8, [number])),
        lambda files: ours(files).map(NUMBERS).padded_batch(8, [9]),
    ),
    # of file names, and of functions that open files
    "tfrfast does not read file names that come from map": lambda files: theirs(
        names(files).map(tf.identity)
    ).batch(8),
    "the file names are not known before the program iterates": in_a_graph(
        lambda files, number: theirs(tf.as_string(number)).batch(8)
    ),
    "tfrfast does not read elements of several file names": lambda files: (
        DATA.from_tensors(files).flat_map(tf.data.TFRecordDataset).batch(8)
    ),
    "the file names come from repeat() with a count that is not known": in_a_graph(
        lambda files, number: theirs(names(files).repeat(number)).batch(8)
    ),
    "tfrfast does not take a part of names that are shuffled or repeated": lambda files: theirs(
        names(files).repeat(2).take(4)
    ).batch(8),
    "the part of the names is not known": in_a_graph(
        lambda files, number: theirs(names(files).take(number)).batch(8)
    ),
    "tfrfast does not join names that are shuffled or repeated": lambda files: theirs(
        names(files).repeat(2).concatenate(names(files))
    ).batch(8),
    "tfrfast does not plan a function that does more than open one TFRecord file": inside(
        lambda name: theirs([name, name])
    ),
    "TensorFlow judges the compression": inside(lambda name: theirs(name, compression_type="zip")),
    "TensorFlow judges the buffer's size": inside(lambda name: theirs(name, buffer_size=-2)),
    "the map() in its function uses what is known only for each file": inside(
        lambda name: theirs(name).map(lambda r: r + name)
    ),
    "the map() in its function draws random numbers from a seed": inside(
        lambda name: theirs(name).map(lambda r: (r, tf.random.uniform([], seed=1)))
    ),
    "its function does more than open files, whenever it is called": inside(printing_name),
    "tfrfast does not read files from an offset on": inside(lambda name: from_offset(name)),
    "the compression is known only in the graph": inside(
        lambda name: theirs(name, compression_type=tf.strings.substr(name, 0, 0))
    ),
    "the map() in its function cannot be made one of all records": inside(
        lambda name: theirs(name).map(compiled_length)
    ),
    "the number of interleaved files is not known": in_a_graph(
        lambda files, number: names(files).interleave(theirs, number).batch(8)
    ),
    "TensorFlow chooses the number of interleaved files": in_a_graph(
        lambda files, _: names(files).interleave(theirs, -5).batch(8)
    ),
    "TensorFlow refuses more calls than interleaved files": in_a_graph(
        lambda files, _: names(files).interleave(theirs, 2, num_parallel_calls=3).batch(8)
    ),
    "the number of files that are read at once is not known": in_a_graph(
        lambda files, number: names(files).interleave(theirs, 2, num_parallel_calls=number).batch(8)
    ),
}


#: Reasons without a chain here: the test that makes them, or why no chain does.
ELSEWHERE = {
    "another dataset of the same shuffle() is TensorFlow's": "its error: test_accelerate.py",
    "TensorFlow does not show whether the order is kept": "no TensorFlow hides it so far",
    "no order of its elements is known": "another reason is always told first",
    "by a fault of tfrfast": "test_accelerate.py",
    "small records on a network would be asked for one by one": "test_urls.py",
    "are not indexed unasked, and have no index beside them": "test_accelerate.py",
}
MADE = ("Refusal", "RefusedError")
#: Functions that return reasons as text.
TELLING = ("_why_not", "_why_not_node", "why_not")


def texts() -> Iterator[tuple[str, bool]]:
    """Yields the reasons in the sources, and whether each has its remedy beside it."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MADE:
                yield from ((text, len(node.args) > 1) for text in strings(node.args[0]))
            elif isinstance(node, ast.FunctionDef) and node.name in TELLING:
                returned = (each.value for each in ast.walk(node) if isinstance(each, ast.Return))
                yield from ((text, False) for each in returned if each for text in strings(each))


def strings(node: ast.expr) -> Iterator[str]:
    """Yields the strings of an expression; of an f-string, the longest constant part."""
    if isinstance(node, ast.IfExp):
        yield from (*strings(node.body), *strings(node.orelse))
    elif isinstance(node, ast.JoinedStr):
        parts = (str(each.value) for each in node.values if isinstance(each, ast.Constant))
        yield max(parts, key=len).strip(" :(")
    elif isinstance(node, ast.Constant) and node.value:
        yield node.value


def test_each_reason_has_a_chain() -> None:
    found = [(text, has) for text, has in texts() if text not in ELSEWHERE]
    known = {text: [each for each in REASONS if text in each or each in text] for text, _ in found}
    assert sorted(text for text, reasons in known.items() if not reasons) == []
    remedied = {each for text, has in found if has for each in known[text] if each == text}
    assert sorted(each for each in remedied if callable(REASONS[each])) == []


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.filterwarnings("ignore::tfrfast.SlowPathWarning")
def test_a_reason_is_given_and_its_remedy_helps(files: list[str], reason: str) -> None:
    chain = REASONS[reason]
    refused = (chain if callable(chain) else chain[0])(files)
    text = explained(refused)
    assert reason in text
    if isinstance(refused, DATA) and "tfr.accelerate(dataset) gains nothing" in text:
        assert tfr.accelerate(refused) is refused
    if callable(chain):
        return
    dataset = chain[1](files)
    text = explained(dataset)
    assert reason not in text
    assert "planned" in text
    if isinstance(dataset, DATA):
        next(iter(tfr.accelerate(dataset)))


def explained(made: Any) -> str:
    return str(tfr.explain(made) if isinstance(made, DATA) else made)
