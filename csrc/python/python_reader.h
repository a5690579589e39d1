// A reader for Python: a core source of records that can be closed.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/read/reader.h"
#include "core/read/record_source.h"
#include "python/without_gil.h"

namespace tfrfast::python {

// The core's source lives as long as it is used, even after close().
class PythonReader {
 public:
  explicit PythonReader(std::shared_ptr<const RecordSource> source) : source_(std::move(source)) {}

  const std::shared_ptr<const RecordSource>& get() const {
    if (source_ == nullptr) throw Error(ErrorKind::closed, "This reader has been closed.");
    return source_;
  }
  // Like get(), for callers that need records that are frames of shards. Throws Error invalid for
  // other sources.
  std::shared_ptr<const Reader> frames() const {
    const Reader* const reader = get()->reader();
    if (reader == nullptr) {
      throw Error(ErrorKind::invalid,
                  "This call needs whole records, but this reader makes its records from parts. "
                  "Pass the Reader of the whole records.");
    }
    return {source_, reader};
  }
  bool closed() const { return source_ == nullptr; }
  void close() {
    std::shared_ptr<const RecordSource> closing = std::exchange(source_, nullptr);
    const WithoutGil without_gil;  // unmapping thousands of shards takes a while
    closing = nullptr;
  }

 private:
  std::shared_ptr<const RecordSource> source_;
};

// Locates a record. Opens the record's shard without the GIL: an object comes through a Python
// thread, so opening one with the GIL would wait for ever.
inline Row locate_one(const Reader& reader, std::uint64_t record) {
  if (record < reader.record_count()) {
    const ShardSet::Place place = reader.shards().place(record);
    const IndexedShard* const shard = reader.shards().slot(place.shard).opened();
    if (shard != nullptr) {
      return {shard, place.number, record, shard->index->frame(place.number)};
    }
  }
  const WithoutGil without_gil;
  return reader.locate(record);
}

}  // namespace tfrfast::python
