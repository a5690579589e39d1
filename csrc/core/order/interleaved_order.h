// Interleaves files: takes a block of records from each of several files in turn, over and over,
// the same in every epoch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/order/order.h"

namespace tfrfast {

// The order of tf.data's interleave(). Each slot holds a file. In every lap, each slot gives the
// next block of its file. A file's last block may be short. A slot whose file has ended with a
// whole block skips one lap. In the lap after the end, the slot gets the next file.
//
// Holds about 100 bytes per file.
class InterleavedOrder final : public Order {
 public:
  static constexpr const char* kName = "interleaved";

  // Throws Error(invalid) for less than one slot, for blocks of less than one record, for a
  // negative number of records, and for more than kMaxPermutationSize records together.
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

  // A slot that gives blocks of `records` records: its first block in lap `lap`, from record
  // `first` on.
  struct Active {
    std::int64_t slot = 0;
    std::int64_t lap = 0;
    std::int64_t first = 0;
    std::int64_t records = 0;
  };

 private:
  class Epoch;

  // A slot begins to give records, or has given the last record of its file.
  struct Change {
    std::int64_t lap = 0;
    Active active;
    bool begins = false;
  };
  // The laps in which the same slots give records. Ends where the next SameLaps begins.
  struct SameLaps {
    std::int64_t lap = 0;
    std::int64_t position = 0;
    std::int64_t lap_records = 0;
    // End of the changes that lead from the previous SameLaps to this one.
    std::size_t changes_end = 0;
  };
  // The slots that give records in some of the SameLaps. The slots of any other SameLaps are
  // computed from the last milestone before it. Milestones are so few that they take no more memory
  // than the changes.
  struct Milestone {
    std::size_t laps = 0;
    std::vector<Active> active;
  };

  void add_changes();
  void add_laps(const Active& active, std::int64_t laps);
  void add_same_laps();
  void change(std::vector<Active>& active, std::size_t begin, std::size_t end) const;

  std::vector<std::int64_t> file_records_;
  std::int64_t slots_;
  std::int64_t block_records_;
  std::vector<Change> changes_;
  std::vector<SameLaps> same_laps_;
  std::vector<Milestone> milestones_;
};

}  // namespace tfrfast
