#include "core/order/pack_shapes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace tfrfast {
namespace {

// Pieces of one length are drawn in chunks, about this many of all lengths together.
constexpr std::int64_t kChunks = std::int64_t{1} << 15;
// A chunk's size is multiplied by a random number from kMinFactor on, below kMinFactor +
// kFactorRange, which decides when the chunk is placed.
constexpr std::uint64_t kMinFactor = 256;
constexpr std::uint64_t kFactorRange = 4096;
// With several budgets, so many kinds of free space are tried before a new pack is opened.
constexpr int kTries = 64;

struct Chunk {
  std::uint64_t weight = 0;
  std::uint32_t length_class = 0;
  std::int64_t count = 0;
};

std::vector<Chunk> chunks_of(const std::vector<LengthClass>& classes, const Lengths& tokens,
                             const SipKey& key, std::uint64_t attempt) {
  std::int64_t pieces = 0;
  for (const LengthClass& each : classes) pieces += each.count;
  const std::int64_t chunk_pieces = std::max<std::int64_t>(1, (pieces + kChunks - 1) / kChunks);
  const std::uint64_t widest = *std::max_element(tokens.begin(), tokens.end());
  std::vector<Chunk> chunks;
  for (std::uint32_t c = 0; c < classes.size(); ++c) {
    std::uint64_t size = 0;
    for (std::size_t b = 0; b < kMaxBudgets && tokens[b] != 0; ++b) {
      size += classes[c].lengths[b] * (widest / tokens[b]);
    }
    const std::int64_t count = (classes[c].count + chunk_pieces - 1) / chunk_pieces;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t random = siphash(key, {attempt, c, static_cast<std::uint64_t>(i)});
      const std::uint64_t factor = kMinFactor + ((random >> 32) * kFactorRange >> 32);
      chunks.push_back(
          {size * factor, c, classes[c].count / count + (i < classes[c].count % count ? 1 : 0)});
    }
  }
  std::stable_sort(chunks.begin(), chunks.end(),
                   [](const Chunk& a, const Chunk& b) { return a.weight > b.weight; });
  return chunks;
}

// How many of `lengths` fit into `space`.
std::int64_t fitting(const Lengths& lengths, const Lengths& space) noexcept {
  std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  for (std::size_t b = 0; b < kMaxBudgets; ++b) {
    if (lengths[b] != 0) most = std::min(most, space[b] / lengths[b]);
  }
  return most;
}

}  // namespace

// Places chunk after chunk: into the packs whose free space fits best, or into new packs.
class PackShapes::Drawing {
 public:
  Drawing(const std::vector<LengthClass>& classes, const Lengths& tokens,
          std::optional<std::int64_t> packs)
      : classes_(classes), tokens_(tokens), limit_(packs), next_places_(classes.size()) {
    for (const LengthClass& each : classes) left_ += each.count;
  }

  // False if there are too few packs.
  bool place(std::uint32_t length_class, std::int64_t count) {
    const Lengths& lengths = classes_[length_class].lengths;
    while (count > 0) {
      // Each pack that is not open yet needs a piece.
      const std::int64_t spare =
          limit_ ? left_ - (*limit_ - shapes_.packs_) : std::numeric_limits<std::int64_t>::max();
      const auto found = spare > 0 ? best_fit(lengths) : open_.end();
      std::int64_t each, packs;
      if (found != open_.end()) {
        const auto [space, node] = *found;
        Group& group = groups_[node];
        each = std::min(
            {fitting(lengths, space), std::max<std::int64_t>(1, count / group.packs), spare});
        packs = std::min({group.packs, count / each, spare / each});
        const std::int64_t begin = group.begin;
        group.begin += packs;
        group.packs -= packs;
        if (group.packs == 0) {
          found->second = group.earlier;
          if (group.earlier == kNone) open_.erase(found);
        }
        add(length_class, node, begin, each, packs, space);
      } else {
        each = std::min(fitting(lengths, tokens_), count);
        if (spare < each - 1) each = spare + 1;
        packs = count / each;
        if (each > 1) packs = std::min(packs, spare / (each - 1));
        if (limit_ && packs > *limit_ - shapes_.packs_) return false;
        shapes_.packs_ += packs;
        add(length_class, kNone, 0, each, packs, tokens_);
      }
      count -= each * packs;
      left_ -= each * packs;
    }
    return true;
  }

  PackShapes finish() {
    std::vector<PackRun>& runs = shapes_.runs_;
    for (const auto& [space, last] : open_) {
      const auto first = static_cast<std::ptrdiff_t>(runs.size());
      for (std::uint32_t node = last; node != kNone; node = groups_[node].earlier) {
        runs.push_back({node, groups_[node].begin, 0});
      }
      std::reverse(runs.begin() + first, runs.end());
    }
    unsigned& shift = shapes_.guide_shift_;
    while (shapes_.packs_ >> shift > static_cast<std::int64_t>(runs.size())) ++shift;
    std::int64_t packs = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].first_pack = packs;
      packs += groups_[runs[i].node].packs;
      while (static_cast<std::int64_t>(shapes_.guide_.size()) << shift < packs) {
        shapes_.guide_.push_back(i);
      }
    }
    return std::move(shapes_);
  }

 private:
  // The packs of a node that have not grown further, which are neighbours.
  struct Group {
    std::int64_t begin = 0;
    std::int64_t packs = 0;
    std::uint32_t earlier = kNone;  // the node of the group of the same space made before
  };
  using Open = std::map<Lengths, std::uint32_t>;  // by free space: the node of the last group

  Open::iterator best_fit(const Lengths& lengths) {
    auto found = open_.lower_bound(lengths);
    for (int tries = 0; found != open_.end() && tries < kTries; ++found, ++tries) {
      if (fitting(lengths, found->first) > 0) return found;
    }
    return open_.end();
  }

  void add(std::uint32_t length_class, std::uint32_t before, std::int64_t before_begin,
           std::int64_t each, std::int64_t packs, Lengths space) {
    const auto node = static_cast<std::uint32_t>(shapes_.nodes_.size());
    std::int64_t& next_place = next_places_[length_class];
    shapes_.nodes_.push_back({before, length_class, before_begin, next_place, each});
    next_place += each * packs;
    for (std::size_t b = 0; b < kMaxBudgets; ++b) {
      space[b] -= classes_[length_class].lengths[b] * static_cast<std::uint32_t>(each);
    }
    std::uint32_t& last = open_.try_emplace(space, kNone).first->second;
    groups_.push_back({0, packs, last});
    last = node;
  }

  const std::vector<LengthClass>& classes_;
  const Lengths tokens_;
  const std::optional<std::int64_t> limit_;
  std::vector<std::int64_t> next_places_;
  std::int64_t left_ = 0;
  Open open_;
  std::vector<Group> groups_;  // of each node
  PackShapes shapes_;
};

std::optional<PackShapes> PackShapes::draw(const std::vector<LengthClass>& classes,
                                           const Lengths& tokens, const SipKey& key,
                                           std::uint64_t attempt,
                                           std::optional<std::int64_t> packs) {
  Drawing drawing(classes, tokens, packs);
  for (const Chunk& chunk : chunks_of(classes, tokens, key, attempt)) {
    if (!drawing.place(chunk.length_class, chunk.count)) return {};
  }
  return drawing.finish();
}

const PackShapes::PackRun& PackShapes::run_of(std::int64_t pack) const noexcept {
  const auto at = static_cast<std::size_t>(pack >> guide_shift_);
  const std::size_t end = at + 1 < guide_.size() ? guide_[at + 1] + 1 : runs_.size();
  const auto after = std::upper_bound(
      runs_.data() + guide_[at], runs_.data() + end, pack,
      [](std::int64_t number, const PackRun& run) { return number < run.first_pack; });
  return *(after - 1);
}

}  // namespace tfrfast
