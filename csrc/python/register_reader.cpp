#include <pybind11/stl.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/numbering.h"
#include "core/base/parallel.h"
#include "core/read/batch_space.h"
#include "core/read/joined_source.h"
#include "core/read/reader.h"
#include "core/read/source_spec.h"
#include "core/storage/storage_options.h"
#include "python/arrays.h"
#include "python/byte_view.h"
#include "python/choices.h"
#include "python/plain_function.h"
#include "python/python_reader.h"
#include "python/record_iterator.h"
#include "python/register.h"
#include "python/text.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using Core = std::shared_ptr<const RecordSource>;
using Frames = std::shared_ptr<const Reader>;

std::unique_ptr<PythonReader> open_reader(const std::vector<std::string>& paths,
                                          const std::string& compression, const std::string& verify,
                                          const std::string& on_corruption, const std::string& io,
                                          const std::string& index, const std::string& index_folder,
                                          unsigned threads, const StorageOptions& storage,
                                          const py::object& progress) {
  ShardSetOptions shards;
  shards.index.storage = storage;
  shards.io = io_mode(io);
  shards.index.use = index_use(index);
  shards.index.folder = index_folder;
  shards.index.compression = compression_choice(compression);
  shards.skip_damage = skips_damage(on_corruption);
  shards.threads = threads;
  const ReadOptions reading{verify_mode(verify), shards.skip_damage, threads};
  WithoutGil without_gil;
  const OpeningProgress report = [&](std::uint64_t done, std::uint64_t all) {
    without_gil.call_back(progress, done, all);
  };
  return std::make_unique<PythonReader>(
      std::make_shared<const Reader>(ShardSet::open(paths, shards, report), reading));
}

// Joins the records of several readers, end to end, with the first reader's options. Readers of
// frames share a set of shards, which saves a copy.
std::unique_ptr<PythonReader> join_readers(const std::vector<const PythonReader*>& readers) {
  std::vector<Core> sources;
  for (const PythonReader* reader : readers) sources.push_back(reader->get());
  const WithoutGil without_gil;
  const bool are_frames = std::all_of(sources.begin(), sources.end(),
                                      [](const Core& each) { return each->reader() != nullptr; });
  if (!are_frames) {
    return std::make_unique<PythonReader>(std::make_shared<const JoinedSource>(std::move(sources)));
  }
  std::vector<std::shared_ptr<const ShardSet>> sets;
  for (const Core& each : sources) sets.emplace_back(each, &each->shards());
  return std::make_unique<PythonReader>(
      std::make_shared<const Reader>(ShardSet::joined(sets), sources.at(0)->options()));
}

py::bytes read_one(const Core& source, std::uint64_t record) {
  const Reader* const reader = source->reader();
  if (reader == nullptr) {
    std::shared_ptr<const RecordBatch> batch;
    {
      const WithoutGil without_gil;
      batch = source->read_one(record);
    }
    return to_bytes((*batch)[0]);
  }
  const Row row = locate_one(*reader, record);
  check_space(row);
  PyObject* bytes =
      PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(row.frame.payload_bytes));
  if (bytes == nullptr) throw py::error_already_set();
  auto result = py::reinterpret_steal<py::bytes>(bytes);
  auto* out = reinterpret_cast<std::uint8_t*>(PyBytes_AS_STRING(bytes));
  const WithoutGil without_gil;
  reader->read_into(row, out);
  return result;
}

std::shared_ptr<RecordBatch> read_many(const Core& reader, const std::vector<std::int64_t>& records,
                                       std::uint64_t epoch = 0) {
  const WithoutGil without_gil;
  const ReadRequest request{records, nullptr, reader->options().threads, nullptr, false, epoch};
  // Python is the only owner, and may write into its arrays.
  return std::const_pointer_cast<RecordBatch>(reader->read(request));
}

// Accepts integers of any kind, including arrays without dimensions. PyIndex_Check is true for all
// arrays.
bool is_one_number(const py::object& key) {
  if (PyIndex_Check(key.ptr()) == 0 || PyBool_Check(key.ptr())) return false;
  return PyLong_Check(key.ptr()) || py::getattr(key, "ndim", py::int_(0)).equal(py::int_(0));
}

py::object get_item(const PythonReader& self, const py::object& key) {
  const Core reader = self.get();
  const auto count = static_cast<std::int64_t>(reader->record_count());
  if (is_one_number(key)) {
    const py::ssize_t number = PyNumber_AsSsize_t(key.ptr(), PyExc_IndexError);
    if (number == -1 && PyErr_Occurred() != nullptr) {
      const py::error_already_set error;
      if (!error.matches(PyExc_IndexError)) throw error;
      throw_no_such("Record", py::str(key).cast<std::string>(), reader->record_count());
    }
    return read_one(reader, static_cast<std::uint64_t>(number_below(count, number, "Record")));
  }
  if (PySlice_Check(key.ptr())) {
    return py::cast(read_many(reader, slice_numbers(key, reader->record_count())));
  }
  return py::cast(read_many(reader, record_numbers(key, count)));
}

PyObject* call_get_item(PyObject* self, PyObject* key) noexcept {
  return call_plainly([=] {
    return get_item(py::handle(self).cast<const PythonReader&>(),
                    py::reinterpret_borrow<py::object>(key));
  });
}

PyMethodDef item_definition{"item", &call_get_item, METH_O, nullptr};

// Bytes of the compressed shards' streams.
std::uint64_t inflating_bytes(const PythonReader& self) {
  const ShardSet& shards = self.get()->shards();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const ShardSlot& slot = shards.slot(i);
    if (slot.is_inflated()) bytes += slot.stream_bytes();
  }
  return bytes;
}

py::tuple locate(const PythonReader& self, std::int64_t number) {
  const Frames reader = self.frames();
  const auto count = static_cast<std::int64_t>(reader->record_count());
  const Row row =
      locate_one(*reader, static_cast<std::uint64_t>(number_below(count, number, "Record")));
  const std::size_t shard = reader->shards().place(row.record).shard;
  return py::make_tuple(shard, row.frame.offset, row.frame.payload_bytes);
}

// The frames of one shard. May outlive the reader.
class ShardFrames {
 public:
  explicit ShardFrames(SlotIndex index) : index_(std::move(index)) {}

  py::tuple offsets_and_lengths() const {
    std::shared_ptr<const ShardIndex> index;
    {
      const WithoutGil without_gil;
      index = index_.load();
    }
    const auto count = static_cast<py::ssize_t>(index->record_count());
    py::array_t<std::int64_t> offsets(count);
    py::array_t<std::int64_t> lengths(count);
    std::int64_t* const offset = offsets.mutable_data();
    std::int64_t* const length = lengths.mutable_data();
    {
      const WithoutGil without_gil;
      for (py::ssize_t i = 0; i < count; ++i) {
        const Frame frame = index->frame(static_cast<std::uint64_t>(i));
        offset[i] = static_cast<std::int64_t>(frame.offset);
        length[i] = static_cast<std::int64_t>(frame.payload_bytes);
      }
    }
    return py::make_tuple(offsets, lengths);
  }

 private:
  SlotIndex index_;
};

py::bytes describe(const PythonReader& self) {
  return py::bytes(SourceSpec::of(*self.get()).encode());
}

py::dict describe_shard(const PythonReader& self, std::size_t number) {
  const Core reader = self.get();
  const ShardSlot& shard = reader->shards().slot(number);
  py::dict facts;
  facts["path"] = to_text(shard.path());
  facts["num_records"] = shard.record_count();
  facts["num_bytes"] = shard.file_bytes();
  facts["stream_bytes"] = shard.stream_bytes();
  facts["compression"] = compression_name(shard.compression());
  facts["index"] = to_text(shard.index_path());
  facts["frames"] = ShardFrames(shard.index());
  const FileFacts& file = shard.file_facts();
  const VersionTag version = file.version_lasts ? file.version : VersionTag();
  facts["version"] =
      py::make_tuple(file.mtime_ns, version.words[0], version.words[1], version.words[2]);
  return facts;
}

py::list skipped(const PythonReader& self) {
  py::list all;
  const Core reader = self.get();
  for (const SkippedBytes& each : reader->skipped()) {
    all.append(py::make_tuple(to_text(each.path), each.begin, each.end,
                              each.records == 0 ? py::object(py::none()) : py::int_(each.records)));
  }
  return all;
}

// Reads, verifies and drops the records from `begin` to `end`, or about `max_bytes`. Returns the
// next record's number and the number of good records.
py::tuple verify_from(const PythonReader& self, std::uint64_t begin, std::uint64_t end,
                      std::uint64_t max_bytes) {
  const Core reader = self.get();
  RecordSource::Range range;
  {
    const WithoutGil without_gil;
    const std::uint64_t step_end = reader->range_end(begin, max_bytes, end - begin);
    range = reader->read_range(begin, step_end);
  }
  if (range.error) throw *range.error;
  return py::make_tuple(range.next, range.batch->size());
}

}  // namespace

void register_reader(py::module_& module) {
  py::class_<RecordIterator>(module, "RecordIterator")
      .def("__iter__", [](const py::object& self) { return self; })
      .def("__next__", &RecordIterator::next);

  py::class_<ShardFrames>(module, "ShardFrames")
      .def("offsets_and_lengths", &ShardFrames::offsets_and_lengths);

  py::class_<PythonReader>(module, "Reader")
      .def(py::init(&open_reader), py::arg("paths"), py::arg("compression"), py::arg("verify"),
           py::arg("on_corruption"), py::arg("io"), py::arg("index"), py::arg("index_folder"),
           py::arg("threads"), py::arg("storage"), py::arg("progress"))
      .def_static("joined", &join_readers, py::arg("readers"))
      .def("source_starts",
           [](const PythonReader& self) { return to_array(self.get()->source_starts()); })
      .def("__len__", [](const PythonReader& self) { return self.get()->record_count(); })
      .def_property_readonly(
          "item", [](const py::object& self) { return bind_plainly(item_definition, self); })
      .def("__iter__",
           [](py::object self) { return std::make_unique<RecordIterator>(std::move(self)); })
      .def(
          "read",
          [](const PythonReader& self, const py::object& indices, std::uint64_t epoch) {
            const Core reader = self.get();
            const auto count = static_cast<std::int64_t>(reader->record_count());
            return read_many(reader, record_numbers(indices, count), epoch);
          },
          py::arg("indices"), py::arg("epoch") = 0)
      .def("close", &PythonReader::close)
      .def_property_readonly("closed", &PythonReader::closed)
      .def_property_readonly("fingerprint",
                             [](const PythonReader& self) { return self.get()->fingerprint(); })
      .def("locate", &locate)
      .def("num_shards", [](const PythonReader& self) { return self.get()->shards().size(); })
      .def("inflating_bytes", &inflating_bytes)
      .def("describe", &describe)
      .def("describe_shard", &describe_shard)
      .def("skipped", &skipped)
      .def("verify_from", &verify_from);

  module.def("usable_processors", &usable_processors);
}

}  // namespace tfrfast::python
