// Shards as the ops open them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../core/shard_fixture.h"
#include "core/order/sequence.h"
#include "tensorflow/file_order.h"
#include "tensorflow/reading.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow::testing {

// Writes shards of `counts` records of `bytes` bytes. All records differ.
inline std::vector<tfrfast::testing::TestShard> write_shards(
    const tfrfast::testing::TemporaryFolder& folder, const std::vector<std::size_t>& counts,
    std::size_t bytes = 10) {
  std::vector<tfrfast::testing::TestShard> shards;
  unsigned seed = 0;
  for (const std::size_t count : counts) {
    auto& shard = shards.emplace_back(folder / (std::to_string(shards.size()) + ".tfrecord"));
    for (std::size_t i = 0; i < count; ++i) {
      shard.write_record(tfrfast::testing::payload(bytes, ++seed));
    }
  }
  return shards;
}

inline SourceSpec streamed_spec(const std::vector<tfrfast::testing::TestShard>& shards) {
  SourceSpec spec;
  for (const auto& shard : shards) spec.shards.push_back({shard.path(), 0, 0});
  return spec;
}

inline std::shared_ptr<const Source> streamed_source(
    const std::vector<tfrfast::testing::TestShard>& shards, SourceSpec options = {}) {
  options.shards = streamed_spec(shards).shards;
  options.index_use = IndexUse::memory;
  return std::make_shared<const Source>(std::move(options));
}

// A planned source, indexed in memory. `options` holds everything but the shards.
inline std::shared_ptr<const Source> planned_source(
    const std::vector<tfrfast::testing::TestShard>& shards, SourceSpec options = {}) {
  std::vector<std::string> paths;
  for (const auto& shard : shards) paths.push_back(shard.path());
  options.index_use = IndexUse::memory;
  const auto opened = ShardSet::open(paths, shard_options(options));
  options.planned = true;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const ShardIndex& index = *(*opened)[i].index;
    options.shards.push_back({paths[i], index.facts().file_bytes, index.record_count()});
  }
  const ReadOptions how{options.verify, options.skip_damage};
  return std::make_shared<const Source>(std::move(options),
                                        std::make_shared<const Reader>(opened, how));
}

inline std::vector<std::string> payloads_of(const ReadBatch& read) {
  std::vector<std::string> payloads;
  for (const GoodRows& piece : read.pieces) {
    for (const WireBytes bytes : piece.payloads) {
      payloads.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  return payloads;
}

// Reads rows as strings.
inline ReadBatch read_rows(const std::shared_ptr<const Source>& source, std::vector<Row> rows,
                           std::string error = "") {
  BatchRows batch;
  batch.source = source;
  batch.rows = std::move(rows);
  batch.error = std::move(error);
  return read_batch(batch, nullptr);
}

// The next rows of a source in file order, from a cursor that knows all files.
inline Cursor beginning_of(const Source& source, std::int64_t slots = 1) {
  Cursor cursor;
  cursor.slots.resize(static_cast<std::size_t>(slots));
  cursor.ahead = {{0, 1, static_cast<std::int64_t>(source.shard_count())}, {Cursor::kEnd, 1, 1}};
  return cursor;
}
inline const Wanted kEverything{{0, 1, kEndless}};

// The records of a source, up to the first error.
inline ReadBatch read_to_error(const std::shared_ptr<const Source>& source) {
  Cursor cursor = beginning_of(*source);
  std::vector<Row> rows;
  FileWalk walk(*source, kEverything, cursor);
  const FileWalk::Passed passed = walk.pass(1000, 1 << 30, &rows);
  return read_rows(source, std::move(rows), passed.error);
}

}  // namespace tfrfast::tensorflow::testing
