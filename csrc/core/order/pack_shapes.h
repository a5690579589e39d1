// Draws how the lengths of records fill packs: a pure function of a histogram, a key and an
// attempt. docs/permutation.md specifies the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/order/order.h"
#include "core/order/siphash.h"

namespace tfrfast {

// All pieces of one length.
struct LengthClass {
  Lengths lengths{};
  std::int64_t first = 0;  // the number of all shorter pieces
  std::int64_t count = 0;
};

// Shapes are kept as they grew: packs that part share what they had in common. So memory depends on
// the number of different lengths and draws, and hardly on the number of packs. Immutable.
class PackShapes {
  static constexpr std::uint32_t kNone = 0xffff'ffff;
  // Each of some neighbouring packs got `each` pieces of a class. Before, they were a part of the
  // packs of node `before`, from before_begin on.
  struct Growth {
    std::uint32_t before = kNone;
    std::uint32_t length_class = 0;
    std::int64_t before_begin = 0;
    std::int64_t first_place = 0;
    std::int64_t each = 1;
  };
  struct PackRun {
    std::uint32_t node = kNone;
    std::int64_t begin = 0;       // in the node's packs
    std::int64_t first_pack = 0;  // the number of the first pack
  };

 public:
  // Every class has pieces, and each length fits its budget. Nothing is returned if the pieces need
  // more than `packs` packs. With `packs`, there are exactly as many, and none is empty. Without,
  // as few as the draw needs.
  static std::optional<PackShapes> draw(const std::vector<LengthClass>& classes,
                                        const Lengths& tokens, const SipKey& key,
                                        std::uint64_t attempt,
                                        std::optional<std::int64_t> packs = {});

  std::int64_t packs() const noexcept { return packs_; }

  // Neighbouring places of a class in a pack.
  struct ClassPlaces {
    std::uint32_t length_class = 0;
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  // Walks through what was put into a pack, the last places first.
  class Walk {
   public:
    Walk(const PackShapes& shapes, std::int64_t pack) noexcept : nodes_(shapes.nodes_.data()) {
      const PackRun& run = shapes.run_of(pack);
      node_ = run.node;
      at_ = run.begin + pack - run.first_pack;
    }
    bool at_end() const noexcept { return node_ == kNone; }
    ClassPlaces next() noexcept {
      const Growth& added = nodes_[node_];
      const ClassPlaces places{added.length_class, added.first_place + at_ * added.each,
                               added.each};
      at_ += added.before_begin;
      node_ = added.before;
      // Nodes lie anywhere. Other packs are walked through meanwhile.
      if (node_ != kNone) __builtin_prefetch(nodes_ + node_);
      return places;
    }

   private:
    const Growth* nodes_;
    std::uint32_t node_ = kNone;
    std::int64_t at_ = 0;
  };

 private:
  class Drawing;

  const PackRun& run_of(std::int64_t pack) const noexcept;

  std::vector<Growth> nodes_;
  std::vector<PackRun> runs_;
  // The number of the run that has pack i << guide_shift_, so that a search stays in few cache
  // lines.
  std::vector<std::size_t> guide_;
  unsigned guide_shift_ = 0;
  std::int64_t packs_ = 0;
};

}  // namespace tfrfast
