// Files take turns: a block of records of each of several files, over and over, the same in every
// epoch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/order/order.h"

namespace tfrfast {

// The order of tf.data's interleave(). There are so many slots, with a file in each. In every lap
// each slot gives the next block of its file. A file's last block may be short. A slot whose file
// ends with a whole block is passed over once. From the next lap on, the slot has the next file.
//
// Holds some 100 bytes for each file.
class InterleavedOrder final : public Order {
 public:
  static constexpr const char* kName = "interleaved";

  // Throws Error(invalid) for less than one slot, for blocks of less than one record, or for counts
  // that no files have.
  InterleavedOrder(std::vector<std::int64_t> file_records, std::int64_t slots,
                   std::int64_t block_records = 1);
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t, std::uint64_t) const override;
  std::shared_ptr<const Order> over(std::int64_t records) const override;
  std::shared_ptr<const Order> over_files(const std::vector<std::int64_t>& firsts,
                                          std::int64_t records) const override;
  std::string describe_shuffle(std::uint64_t) const override;
  const char* name() const noexcept override { return kName; }
  void encode(Encoder& encoder) const override;

  // A slot that gives blocks of so many records: its first in lap `lap`, from record `first` on.
  struct Active {
    std::int64_t slot = 0;
    std::int64_t lap = 0;
    std::int64_t first = 0;
    std::int64_t records = 0;
  };

 private:
  class Epoch;

  // A slot begins to give records, or has given its file's last one.
  struct Change {
    std::int64_t lap = 0;
    Active active;
    bool begins = false;
  };
  // Laps in which the same slots give records, up to those of the next stretch.
  struct Stretch {
    std::int64_t lap = 0;
    std::int64_t position = 0;
    std::int64_t lap_records = 0;
    std::size_t changes_end = 0;  // those after the stretch before it, up to here, lead to it
  };
  // The slots that give records in a stretch. There are few of them, so that they take no more
  // memory than the changes. What follows is worked out from the last one.
  struct Milestone {
    std::size_t stretch = 0;
    std::vector<Active> active;
  };

  void add_changes();
  void add_laps(const Active& active, std::int64_t laps);
  void add_stretches();
  void change(std::vector<Active>& active, std::size_t begin, std::size_t end) const;

  std::vector<std::int64_t> file_records_;
  std::int64_t slots_;
  std::int64_t block_records_;
  std::vector<Change> changes_;
  std::vector<Stretch> stretches_;
  std::vector<Milestone> milestones_;
};

}  // namespace tfrfast
