// One epoch of a mixture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/order/mixture.h"

namespace tfrfast {

// Does not own the Mixture. Any number of threads. Remembers each source's last order of an epoch.
class MixtureEpoch final : public EpochOrder {
 public:
  MixtureEpoch(const Mixture& mixture, std::uint64_t seed, std::uint64_t epoch);

  void evaluate(const std::int64_t* positions, std::size_t count, std::int64_t* out) const override;
  void add_rows(std::span<const std::int64_t> positions, std::uint32_t first_row,
                std::vector<PackedRecord>& rows) const override;

 private:
  using Wide = Mixture::Wide;

  // A place in a source: an epoch of the source, and a position in that epoch.
  struct SourcePlace {
    std::uint64_t epoch = 0;
    std::int64_t position = 0;
  };
  // The draws of a source in a run.
  struct Draws {
    Wide before = 0;  // draws of the segment before this epoch
    // of the segment; null if each epoch starts again
    const Mixture::Beginning* beginning = nullptr;
    bool has_left_over = false;  // whether the run's draws include left-over draws
    SourcePlace first;           // the place of the run's draw 0, if no draws are left over
  };
  // Positions, in units, in one segment.
  struct WeightedRun {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    const Stretch* stretch = nullptr;
    std::int64_t stretch_begin = 0;
    std::vector<Draws> draws;  // by source
  };
  struct SourceRows;  // rows of one source
  // A batch of a source, if the sources' positions are batches.
  struct SourceBatch {
    std::size_t source = 0;
    std::shared_ptr<const EpochOrder> order;  // of the source
    std::int64_t position = 0;                // in `order`
  };

  SourcePlace place_of(std::size_t source, Wide draw) const noexcept;
  SourcePlace place_in(const WeightedRun& run, std::size_t source,
                       std::int64_t draw) const noexcept;
  void add_run(const Mixture::Segment& segment, const std::vector<Mixture::Beginning>& beginnings,
               std::int64_t begin, std::int64_t end);
  void evaluate_block(const WeightedRun& run, const std::int64_t* positions, std::size_t count,
                      std::int64_t* out) const;
  void evaluate_source(const WeightedRun& run, std::size_t source, const SourceRows& rows,
                       std::int64_t* out) const;
  SourceBatch batch_at(std::int64_t position) const;
  const WeightedRun& run_at(std::int64_t unit) const noexcept;
  DrawFinder finder_in(const WeightedRun& run) const noexcept {
    return {*run.stretch, run.stretch_begin, shuffle_};
  }
  std::shared_ptr<const EpochOrder> order_of(std::size_t source, std::uint64_t epoch) const;

  const Mixture* mixture_;
  std::uint64_t epoch_;
  PeriodShuffle shuffle_;
  std::shared_ptr<const Mixture::Beginnings> beginnings_;
  std::vector<std::uint64_t> seeds_;  // by source
  std::vector<WeightedRun> runs_;

  struct Recent {
    std::uint64_t epoch = 0;
    std::shared_ptr<const EpochOrder> order;
  };
  mutable std::mutex mutex_;
  mutable std::vector<Recent> recent_;  // by source; the lock guards the member
};

}  // namespace tfrfast
