// What one process reads of a source.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/order/sequence.h"
#include "tensorflow/last_made.h"
#include "tensorflow/registry.h"

namespace tfrfast::tensorflow {

// Some shards of a source, as a source of their own: records and blocks are counted from the first
// of them on. Where there are fewer shards than processes, it is some records of every shard. So
// the parts of several processes have nothing in common, whatever order each of them draws.
// Immutable.
class Part {
 public:
  Part(std::shared_ptr<const Source> source, Files files);

  const std::shared_ptr<const Source>& source() const noexcept { return source_; }
  Files files() const noexcept { return files_; }

  // How many batches there are or, without batches, blocks. Throws Error.
  std::int64_t step_count(const Sequence& sequence) const;

  // The records of a batch, as the source counts; `seed` is the order's. Of a planned source.
  std::vector<std::int64_t> records_of_batch(const Sequence& sequence, std::uint64_t seed,
                                             std::int64_t step) const;

  // The blocks of the file whose turn it is: begin and end. Throws Error(invalid) if there is none.
  std::pair<std::int64_t, std::int64_t> blocks_of_file(std::int64_t turn) const;

  // Throws Error(invalid) for a block that does not exist; all other trouble is in the result.
  Records read_block(const Sequence& sequence, std::int64_t step) const;

 private:
  struct Place {
    std::size_t turn = 0;  // of the shard, among these
    std::int64_t within = 0;
  };
  static Place place(const std::vector<std::int64_t>& firsts, std::int64_t number);
  std::size_t shard(std::size_t turn) const noexcept {
    return static_cast<std::size_t>(shards_.at(static_cast<std::int64_t>(turn)));
  }
  std::int64_t record_count() const noexcept { return first_records_.back(); }
  // What a sequence is of these records.
  Sequence own(const Sequence& sequence) const;
  // The source's number of the record that would be `number` if the shard had all.
  std::int64_t in_source(std::size_t turn, std::int64_t number) const;
  std::int64_t block_of(std::int64_t record) const;
  // The first of the blocks that these records begin in, and how many there are.
  std::pair<std::int64_t, std::int64_t> blocks_of(const Progression& records) const;

  std::shared_ptr<const Source> source_;
  Files files_;
  Progression shards_;   // that are read
  Progression records_;  // and which of the records in each
  // Of each shard, and behind the last one.
  std::vector<std::int64_t> first_blocks_{0};
  std::vector<std::int64_t> first_records_{0};  // of a planned source
};

// A kernel's hold on what it reads. Safe from many threads.
class PartHolder {
 public:
  std::shared_ptr<const Sequence> sequence(std::string_view encoded) {
    return sequences_.get(encoded);
  }
  // `look`: whether the files are still what they were. Throws Error.
  std::shared_ptr<const Part> open(std::string_view source, Files files, bool look = false);

 private:
  SourceHolder sources_;
  LastMade<Part> parts_;
  LastDecoded<Sequence> sequences_;
};

// A batch that has to be full is nothing without the records that an error took: throws
// KernelFailure if the sequence has only such, and there is an error ("" for none).
void fail_full_batch(const Sequence& sequence, std::string_view error);

}  // namespace tfrfast::tensorflow
