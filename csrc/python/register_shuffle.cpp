#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/read/record_batch.h"
#include "core/read/record_stream.h"
#include "core/storage/storage_options.h"
#include "core/write/shuffle_buckets.h"
#include "python/output.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// (records, payload bytes, content hash)
using Totals = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;

Totals totals_of(const RecordTotals& totals) {
  return {totals.record_count, totals.payload_bytes, totals.content_hash};
}

std::unique_ptr<ShuffleBuckets> open_buckets(const std::string& folder, std::size_t buffer_bytes,
                                             std::uint64_t seed, const Totals& totals,
                                             std::vector<std::uint64_t> bucket_bytes,
                                             std::vector<std::uint64_t> bucket_records) {
  if (bucket_bytes.size() != bucket_records.size() || bucket_bytes.empty()) {
    throw Error(ErrorKind::invalid, "Buckets need as many sizes as counts, at least one.");
  }
  const auto& [records, payload_bytes, content_hash] = totals;
  const ShuffleBuckets::Options options{folder, bucket_bytes.size(), buffer_bytes, seed};
  const WithoutGil without_gil;
  return std::make_unique<ShuffleBuckets>(
      options, ShuffleBuckets::WrittenBuckets{{records, payload_bytes, content_hash},
                                              std::move(bucket_bytes),
                                              std::move(bucket_records)});
}

std::unique_ptr<RecordStream> open_records(const std::string& path, std::uint64_t offset,
                                           std::uint64_t record, const StorageOptions& storage,
                                           std::uint64_t max_ahead_bytes) {
  const WithoutGil without_gil;
  return std::make_unique<RecordStream>(path, offset, record,
                                        RecordStream::Options{storage, max_ahead_bytes});
}

// Deals the stream's next records to the buckets, up to about `max_bytes`. Returns whether the
// shard ended.
bool add_records(ShuffleBuckets& buckets, RecordStream& stream, std::uint64_t max_bytes) {
  const WithoutGil without_gil;
  const std::uint64_t begin = stream.offset();
  std::span<const std::uint8_t> payload;
  while (stream.offset() - begin < max_bytes) {
    if (!stream.next(&payload)) return true;
    buckets.add(payload);
  }
  return false;
}

// Deals the batch's records to the buckets.
void add_batch(ShuffleBuckets& buckets, const RecordBatch& batch) {
  const WithoutGil without_gil;
  for (std::size_t row = 0; row < batch.size(); ++row) {
    if (batch.is_real(row)) buckets.add(batch[row]);
  }
}

std::unique_ptr<ShuffledBucket> take_bucket(ShuffleBuckets& buckets, std::size_t bucket) {
  const WithoutGil without_gil;
  return std::make_unique<ShuffledBucket>(buckets.take(bucket));
}

// Writes rows [first, end), and stops before a row that would make the shard exceed `max_bytes`.
// Returns (rows written, totals of these rows).
std::tuple<std::size_t, Totals> write_rows(const ShuffledBucket& bucket,
                                           Output<ShardWriter>& output, std::size_t first,
                                           std::size_t end, std::uint64_t max_bytes) {
  if (first > end || end > bucket.size()) {
    throw Error(ErrorKind::invalid, "The bucket does not have these rows.");
  }
  return output.use([&](ShardWriter& writer) -> std::tuple<std::size_t, Totals> {
    RecordTotals totals;
    for (std::size_t row = first; row < end; ++row) {
      const std::span<const std::uint8_t> record = bucket[row];
      const bool full = writer.bytes() > max_bytes || max_bytes - writer.bytes() < kFrameOverhead ||
                        max_bytes - writer.bytes() - kFrameOverhead < record.size();
      if (full && writer.record_count() > 0) break;
      writer.write(record);
      totals.add(record);
    }
    return {static_cast<std::size_t>(totals.record_count), totals_of(totals)};
  });
}

std::unique_ptr<ShuffledBucket> read_bucket(
    const std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>& places,
    std::uint64_t seed, std::size_t records, const StorageOptions& storage) {
  const WithoutGil without_gil;
  std::vector<ShuffledBucket::Place> all;
  for (const auto& [path, offset, bytes] : places) all.push_back({path, offset, bytes});
  return std::make_unique<ShuffledBucket>(ShuffledBucket::read(all, seed, records, storage));
}

std::vector<std::uint64_t> append_to(const ShuffledBucket& bucket, const std::string& path,
                                     const std::vector<std::int64_t>& keys) {
  const WithoutGil without_gil;
  return bucket.append_to(path, keys);
}

std::vector<std::int64_t> keys_at(const std::vector<std::uint64_t>& places,
                                  std::uint64_t record_count, std::uint64_t seed) {
  const WithoutGil without_gil;
  return shuffle_keys_at(places, record_count, seed);
}

}  // namespace

void register_shuffle(py::module_& module) {
  py::class_<RecordStream>(module, "RecordStream", "One shard's records in order.")
      .def(py::init(&open_records), py::arg("path"), py::arg("offset"), py::arg("record"),
           py::arg("storage"), py::arg("max_ahead_bytes"))
      .def("announce", &RecordStream::announce, "Requests the first records from a network.")
      .def_property_readonly("offset", &RecordStream::offset)
      .def_property_readonly("record", &RecordStream::record)
      .def_property_readonly(
          "facts",
          [](const RecordStream& self) {
            const FileFacts& facts = self.facts();
            return py::make_tuple(facts.bytes, facts.mtime_ns, facts.version.words);
          },
          "(bytes, modification time in ns, words of the version) of the file.");

  py::class_<ShuffledBucket>(module, "ShuffledBucket")
      .def_static("read", &read_bucket, py::arg("places"), py::arg("seed"), py::arg("records"),
                  py::arg("storage"))
      .def("__len__", &ShuffledBucket::size)
      .def("append_to", &append_to, py::arg("path"), py::arg("keys"))
      .def("write_rows", &write_rows, py::arg("writer"), py::arg("first"), py::arg("end"),
           py::arg("max_bytes"));

  py::class_<ShuffleBuckets>(module, "ShuffleBuckets")
      .def(py::init(&open_buckets), py::arg("folder"), py::arg("buffer_bytes"), py::arg("seed"),
           py::arg("totals"), py::arg("bucket_bytes"), py::arg("bucket_records"))
      .def("add_records", &add_records, py::arg("stream"), py::arg("max_bytes"))
      .def("add_batch", &add_batch, py::arg("batch"))
      .def("write_out", &ShuffleBuckets::write_out, py::call_guard<WithoutGil>())
      .def("take", &take_bucket, py::arg("bucket"))
      .def("remove", &ShuffleBuckets::remove, py::arg("bucket"))
      .def_property_readonly(
          "totals", [](const ShuffleBuckets& self) { return totals_of(self.state().totals); })
      .def_property_readonly("bucket_bytes",
                             [](const ShuffleBuckets& self) { return self.state().bucket_bytes; })
      .def_property_readonly(
          "bucket_records", [](const ShuffleBuckets& self) { return self.state().bucket_records; });

  module.def("shuffle_keys_at", &keys_at, py::arg("places"), py::arg("record_count"),
             py::arg("seed"));

  module.def(
      "content_hash",
      [](const RecordBatch& batch) {
        RecordTotals totals;
        for (std::size_t row = 0; row < batch.size(); ++row) {
          if (batch.is_real(row)) totals.add(batch[row]);
        }
        return totals_of(totals);
      },
      py::arg("batch"), "(records, payload bytes, content hash) of the rows that are not padding.");
}

}  // namespace tfrfast::python
