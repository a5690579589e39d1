// One epoch of a mixture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/order/mixture.h"

namespace tfrfast {

// Refers to the Mixture. Any number of threads; each source's order of the epoch that it was last
// in is remembered.
class MixtureEpoch final : public EpochOrder {
 public:
  MixtureEpoch(const Mixture& mixture, std::uint64_t seed, std::uint64_t epoch);

  void evaluate(const std::int64_t* positions, std::size_t count, std::int64_t* out) const override;
  std::int64_t rows_at(std::int64_t position) const override;
  void write_rows(std::int64_t position, std::int64_t* out) const override;

 private:
  using Wide = Mixture::Wide;

  // A place in a source: in which of its epochs, and where in it.
  struct Place {
    std::uint64_t epoch = 0;
    std::int64_t position = 0;
  };
  // Draws of a source in a run.
  struct Draws {
    Wide before = 0;                                // those of the segment before this epoch
    const Mixture::Beginning* beginning = nullptr;  // of the segment; null: this epoch's own
    bool has_left_over = false;                     // among them
    Place first;                                    // of the run's draw 0 if none is left over
  };
  // Positions, in units, that belong to one segment.
  struct Run {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    const Stretch* stretch = nullptr;
    std::int64_t stretch_begin = 0;
    std::vector<Draws> draws;  // of each source
  };
  struct Rows;  // of one source
  // A batch, if the sources' positions are batches.
  struct SourceBatch {
    std::size_t source = 0;
    std::shared_ptr<const EpochOrder> order;  // of the source
    std::int64_t position = 0;                // in it
  };
  class Finder;

  Place place_of(std::size_t source, Wide draw) const noexcept;
  Place place_in(const Run& run, std::size_t source, std::int64_t draw) const noexcept;
  void add_run(const Mixture::Segment& segment, const std::vector<Mixture::Beginning>& beginnings,
               std::int64_t begin, std::int64_t end);
  void evaluate_block(const Run& run, const std::int64_t* positions, std::size_t count,
                      std::int64_t* out) const;
  void evaluate_source(const Run& run, std::size_t source, const Rows& rows,
                       std::int64_t* out) const;
  SourceBatch batch_at(std::int64_t position) const;
  const Run& run_at(std::int64_t unit) const noexcept;
  std::shared_ptr<const EpochOrder> order_of(std::size_t source, std::uint64_t epoch) const;

  const Mixture* mixture_;
  std::uint64_t epoch_;
  PeriodShuffle shuffle_;
  std::shared_ptr<const Mixture::Beginnings> beginnings_;
  std::vector<std::uint64_t> seeds_;  // of each source
  std::vector<Run> runs_;

  struct Recent {
    std::uint64_t epoch = 0;
    std::shared_ptr<const EpochOrder> order;
  };
  mutable std::mutex mutex_;
  mutable std::vector<Recent> recent_;  // of each source; the lock guards it
};

}  // namespace tfrfast
