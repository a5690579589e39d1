// Mixes several data sets in one order, each in proportion to its weight. docs/permutation.md
// specifies the order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/order/order.h"
#include "core/order/period_shuffle.h"
#include "core/order/stretch.h"

namespace tfrfast {

struct MixtureSpec {
  // The order of each source. Record numbers run through all sources, end to end. If the positions
  // of one source are batches, the positions of all sources must be. Then the mixture's positions
  // are batches, too, and a unit is one batch.
  std::vector<std::shared_ptr<const Order>> sources;
  Arrangement arrangement = Arrangement::permuted;
  // true: a source begins its next epoch after its last record. false: a source begins its next
  // epoch with each epoch of the mixture, and must have enough records for that epoch.
  bool repeats = true;
  std::int64_t length = 0;     // of an epoch, a multiple of unit_rows
  std::int64_t unit_rows = 1;  // neighbouring rows that come from one source and go to one rank

  struct Segment {
    std::uint64_t epoch = 0;  // the weights apply from this place on
    std::int64_t position = 0;
    std::vector<std::int64_t> weights;  // one weight per source
  };
  std::vector<Segment> segments;  // in order; the first begins at position 0 of epoch 0
};

inline constexpr std::int64_t kMaxUnitRows = (std::int64_t{1} << 31) - 1;
// Limits the sum of all segments' periods, whose tables take up to 6 bytes per slot.
inline constexpr std::int64_t kMaxPeriodSum = std::int64_t{1} << 22;

// Immutable. Any number of threads.
class Mixture final : public Order {
 public:
  static constexpr const char* kName = "mixture";

  explicit Mixture(MixtureSpec spec);  // throws Error(invalid)
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  // Counts each source's records between position 0 of epoch 0 and the given place. Throws
  // Error(invalid) if a count does not fit an int64.
  std::vector<std::int64_t> counts(std::uint64_t seed, std::uint64_t epoch,
                                   std::int64_t position) const;

  // The longest epoch, at most `max_length`, that needs no record of a source twice. Throws
  // Error(invalid) if `weights` are not weights of so many sources.
  static std::int64_t longest_without_repeats(const std::vector<std::int64_t>& records,
                                              const std::vector<std::int64_t>& weights,
                                              std::int64_t unit_rows, std::int64_t max_length);

  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::int64_t unit() const noexcept override { return spec_.unit_rows; }
  std::int64_t max_rows() const noexcept override { return max_rows_; }
  std::span<const std::int64_t> tokens() const noexcept override {
    return spec_.sources[0]->tokens();
  }
  std::string describe_shuffle(std::uint64_t seed) const override;
  std::string describe_records() const override;
  void encode(Encoder& encoder) const override;

 private:
  friend class MixtureEpoch;
  using Wide = unsigned __int128;

  // Below, positions and draws count units.

  // The weights from one place on. A source's draws are counted from that place.
  struct Segment {
    std::uint64_t epoch = 0;
    std::int64_t position = 0;
    Stretch first;  // the rest of that epoch
    Stretch whole;  // a whole epoch

    const Stretch& in(std::uint64_t of_epoch) const { return of_epoch == epoch ? first : whole; }
    std::int64_t begin_in(std::uint64_t of_epoch) const { return of_epoch == epoch ? position : 0; }
    // The source's draws before one of the segment's epochs.
    Wide draws_before(std::size_t source, std::uint64_t of_epoch) const;
  };

  // A source at the beginning of a segment. The period that ends there may have left-over draws.
  // Left-over draws come first, so no record is forgotten. The seed determines which draws are left
  // over.
  struct Beginning {
    Wide drawn = 0;               // draws before the segment
    std::vector<Wide> left_over;  // in ascending order
    Wide next = 0;                // the draws after left_over are next, next + 1, ...

    Wide draw(Wide number) const {
      const Wide others = left_over.size();
      return number < others ? left_over[static_cast<std::size_t>(number)] : next + number - others;
    }
  };
  using Beginnings = std::vector<std::vector<Beginning>>;  // by segment, by source

  std::shared_ptr<const Beginnings> beginnings(std::uint64_t seed) const;
  std::vector<Beginning> beginnings_after(std::uint64_t seed, const std::vector<Beginning>& before,
                                          const Segment& segment, const Segment& next) const;
  // The last segment that begins at or before the place.
  std::size_t part_at(std::uint64_t epoch, std::int64_t position) const noexcept;
  // The draws that a source has for each epoch of the mixture, if sources do not repeat.
  std::int64_t capacity(std::size_t source) const noexcept;
  void check_segments() const;
  void check_capacities() const;

  MixtureSpec spec_;
  std::int64_t max_rows_ = 0;
  // The first record number of each source, and the end of the last source's numbers.
  std::vector<std::int64_t> first_records_;
  std::vector<Segment> segments_;
  struct Remembered {
    std::uint64_t seed = 0;
    std::shared_ptr<const Beginnings> beginnings;
  };
  mutable std::mutex mutex_;
  mutable Remembered remembered_;  // for the last seed; the lock guards the member
};

}  // namespace tfrfast
