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

// Some shards of a source, as a source of their own: their records and blocks are counted from 0.
// If there are fewer shards than processes, a part is some records of every shard. So the parts of
// several processes have nothing in common, even if each process draws another order. Immutable.
class Part {
 public:
  Part(std::shared_ptr<const Source> source, Files files);

  const std::shared_ptr<const Source>& source() const noexcept { return source_; }
  Files files() const noexcept { return files_; }

  // How many batches there are or, without batches, blocks. Throws Error.
  std::int64_t step_count(const Sequence& sequence) const;

  // The records of a batch, numbered as in the source. It must be planned. `seed` is the order's.
  std::vector<std::int64_t> records_of_batch(const Sequence& sequence, std::uint64_t seed,
                                             std::int64_t step) const;

  // The blocks of one of these files: begin and end. Throws Error out_of_range.
  std::pair<std::int64_t, std::int64_t> blocks_of_file(std::int64_t turn) const;

  // Throws Error out_of_range for a block that does not exist. All other errors are in the result.
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
  // The same calls on the records of this part.
  Sequence own(const Sequence& sequence) const;
  // The source's number of record `number` of this part, as if the given shard had the records
  // before its own and after them, too.
  std::int64_t in_source(std::size_t turn, std::int64_t number) const;
  std::int64_t block_of(std::int64_t record) const;
  // The blocks that these records begin in: the first, and how many there are.
  std::pair<std::int64_t, std::int64_t> blocks_of(const Progression& records) const;

  std::shared_ptr<const Source> source_;
  Files files_;
  Progression shards_;   // the shards that are read
  Progression records_;  // the records that are read in each of them
  // For each shard, and after the last one.
  std::vector<std::int64_t> first_blocks_{0};
  std::vector<std::int64_t> first_records_{0};  // of a planned source
};

// A kernel's hold on what it reads. Safe from many threads.
class PartHolder {
 public:
  std::shared_ptr<const Sequence> sequence(std::string_view encoded) {
    return sequences_.get(encoded);
  }
  // With `look`, checks whether the files are still what they were. Throws Error.
  std::shared_ptr<const Part> open(std::string_view source, Files files, bool look = false);

 private:
  SourceHolder sources_;
  LastMade<Part> parts_;
  LastDecoded<Sequence> sequences_;
};

// Throws KernelFailure for `error` ("" for none) if every batch of the sequence has to be full:
// without the records that the error took, the batch is not.
void fail_full_batch(const Sequence& sequence, std::string_view error);

}  // namespace tfrfast::tensorflow
