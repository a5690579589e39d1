// Several data sets in one order, in which each comes in proportion to its weight.
// docs/permutation.md specifies it.
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
  // Each source has an order of its own, and the records of all are numbered end to end. If the
  // positions of one source are batches, those of all are. So are the mixture's, and a unit is one.
  std::vector<std::shared_ptr<const Order>> sources;
  Arrangement arrangement = Arrangement::permuted;
  // Whether a source begins its next epoch after its last record. If not, it does so with each
  // epoch of the mixture, and must have records enough for it.
  bool repeats = true;
  std::int64_t length = 0;     // of an epoch, a multiple of unit_rows
  std::int64_t unit_rows = 1;  // rows that come from one source and go to one rank

  struct Segment {
    std::uint64_t epoch = 0;  // from where on the weights apply
    std::int64_t position = 0;
    std::vector<std::int64_t> weights;  // one for each source
  };
  std::vector<Segment> segments;  // in their order, the first from position 0 of epoch 0 on
};

inline constexpr std::int64_t kMaxUnitRows = (std::int64_t{1} << 31) - 1;
// Of the periods of all segments together: their tables take up to 10 bytes for each slot.
inline constexpr std::int64_t kMaxPeriodSum = std::int64_t{1} << 22;

// Immutable, any number of threads.
class Mixture final : public Order {
 public:
  static constexpr const char* kName = "mixture";

  explicit Mixture(MixtureSpec spec);  // throws Error(invalid)
  static std::shared_ptr<const Order> decode(Decoder& decoder);

  const MixtureSpec& spec() const noexcept { return spec_; }

  // Where the records of each source begin in the numbers of all, and where those of the last end.
  const std::vector<std::int64_t>& first_records() const noexcept { return first_records_; }

  // How many records of each source come before a place, since position 0 of epoch 0. Throws
  // Error(invalid) if they are too many for an int64.
  std::vector<std::int64_t> counts(std::uint64_t seed, std::uint64_t epoch,
                                   std::int64_t position) const;

  // The place of a source's record that `earlier` others of it precede. Throws Error(invalid) if
  // there is none.
  struct Place {
    std::uint64_t epoch = 0;
    std::int64_t position = 0;
  };
  Place place_of(std::uint64_t seed, std::size_t source, std::int64_t earlier) const;

  // The longest epoch, at most `max_length`, for which no source needs more than its records.
  static std::int64_t longest_without_repeats(const std::vector<std::int64_t>& records,
                                              const std::vector<std::int64_t>& weights,
                                              std::int64_t unit_rows, std::int64_t max_length);

  std::unique_ptr<const EpochOrder> of_epoch(std::uint64_t seed,
                                             std::uint64_t epoch) const override;
  std::shared_ptr<const Order> over(std::int64_t records) const override;
  std::int64_t unit() const noexcept override { return spec_.unit_rows; }
  std::int64_t max_rows() const noexcept override { return max_rows_; }
  std::string describe_shuffle(std::uint64_t seed) const override;
  std::string describe_records() const override;
  const char* name() const noexcept override { return kName; }
  void encode(Encoder& encoder) const override;

 private:
  friend class MixtureEpoch;
  using Wide = unsigned __int128;

  // From here on, positions and draws count units.

  // What applies from some place on. A source's draws are counted from there.
  struct Segment {
    std::uint64_t epoch = 0;
    std::int64_t position = 0;
    Stretch first;  // the rest of that epoch
    Stretch whole;  // a whole epoch

    const Stretch& in(std::uint64_t of_epoch) const { return of_epoch == epoch ? first : whole; }
    std::int64_t begin_in(std::uint64_t of_epoch) const { return of_epoch == epoch ? position : 0; }
    // The draws before one of its epochs.
    Wide draws_before(std::size_t source, std::uint64_t of_epoch) const;
  };

  // A source where a segment begins. The period that ends there may have draws that were left over.
  // They come first, so that no record is forgotten. Which ones they are depends on the seed.
  struct Beginning {
    Wide drawn = 0;               // before it
    std::vector<Wide> left_over;  // ascending
    Wide next = 0;                // the draws after them are next, next + 1, ...

    Wide draw(Wide number) const {
      const Wide others = left_over.size();
      return number < others ? left_over[static_cast<std::size_t>(number)] : next + number - others;
    }
  };
  using Beginnings = std::vector<std::vector<Beginning>>;  // of each segment, of each source

  std::shared_ptr<const Beginnings> beginnings(std::uint64_t seed) const;
  std::vector<Beginning> beginnings_after(std::uint64_t seed, const std::vector<Beginning>& before,
                                          const Segment& segment, const Segment& next) const;
  // The last segment that begins at or before a place.
  std::size_t part_at(std::uint64_t epoch, std::int64_t position) const noexcept;
  // How many draws a source has for an epoch of the mixture if sources do not repeat.
  std::int64_t capacity(std::size_t source) const noexcept;
  void check_segments() const;
  void check_capacities() const;

  MixtureSpec spec_;
  std::int64_t max_rows_ = 0;
  std::vector<std::int64_t> first_records_;
  std::vector<Segment> segments_;
  struct Remembered {
    std::uint64_t seed = 0;
    std::shared_ptr<const Beginnings> beginnings;
  };
  mutable std::mutex mutex_;
  mutable Remembered remembered_;  // of the seed that was used last; the lock guards it
};

}  // namespace tfrfast
