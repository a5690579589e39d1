#include "core/keys/record_content.h"

#include <algorithm>

#include "core/base/bytes.h"
#include "core/base/record_hash.h"
#include "core/example/entries.h"
#include "core/example/list.h"
#include "core/example/varints.h"

namespace tfrfast {
namespace {

constexpr unsigned kFeatures = 1;
constexpr unsigned kFeatureLists = 2;

// True if the record consists of maps of features. A parser skips other fields, which would then
// make no difference.
bool has_only_maps(WireBytes record) noexcept {
  WireReader reader(record);
  WireBytes map;
  while (!reader.at_end()) {
    if (!reader.take(bytes_tag(kFeatures)) && !reader.take(bytes_tag(kFeatureLists))) return false;
    if (!reader.read_bytes(map)) return false;
  }
  return true;
}

bool add_unpacked(WordHash& hash, WireReader values, ListKind kind, std::size_t& count) noexcept {
  std::uint64_t number;
  std::uint32_t bits;
  WireBytes string;
  for (; !values.at_end(); ++count) {
    if (kind == ListKind::bytes) {
      if (!values.take(bytes_tag(1)) || !values.read_bytes(string)) return false;
      hash.add(record_hash(string));
    } else if (kind == ListKind::ints) {
      if (!values.take(varint_tag(1)) || !values.read_varint(number)) return false;
      hash.add(number);
    } else {
      if (!values.take(fixed32_tag(1)) || !values.read_fixed32(bits)) return false;
      hash.add(bits);
    }
  }
  return true;
}

// Adds the packed numbers of a list.
bool add_packed(WordHash& hash, WireBytes packed, ListKind kind, std::vector<std::int64_t>& ints,
                std::size_t& count) {
  if (kind == ListKind::floats) {
    constexpr std::size_t kFloatBytes = sizeof(std::uint32_t);
    count = packed.size() / kFloatBytes;
    for (std::size_t i = 0; i < count; ++i) {
      hash.add(load_little_endian<std::uint32_t>(packed.data() + i * kFloatBytes));
    }
    return packed.size() % kFloatBytes == 0;
  }
  ints.resize(std::max(ints.size(), packed.size()));
  const std::ptrdiff_t decoded = decode_varints(packed, packed, ints.data(), packed.size());
  if (decoded < 0) return false;
  count = static_cast<std::size_t>(decoded);
  for (std::size_t i = 0; i < count; ++i) hash.add(static_cast<std::uint64_t>(ints[i]));
  return true;
}

// Adds the kind of a Feature's list, its values, and their number, 0 also without a list: steps
// that follow one another are told apart from their end. Stricter than every parser: false if a
// length does not fit, or bytes are left over.
bool add_feature(WordHash& hash, WireBytes feature, std::vector<std::int64_t>& ints) {
  ListKind kind;
  if (!read_list_kind(feature, kind)) return false;
  hash.add(static_cast<std::uint64_t>(kind));
  if (kind == ListKind::none) {
    hash.add(0);
    return true;
  }
  WireReader reader(feature.subspan(1));
  WireBytes list, packed;
  if (!reader.read_bytes(list) || !reader.at_end()) return false;
  WireReader values(list);
  std::size_t count = 0;
  if (kind != ListKind::bytes && values.take(bytes_tag(1))) {
    if (!values.read_bytes(packed) || !values.at_end()) return false;
    if (!add_packed(hash, packed, kind, ints, count)) return false;
  } else if (!add_unpacked(hash, values, kind, count)) {
    return false;
  }
  hash.add(count);
  return true;
}

}  // namespace

bool ContentHasher::collect(WireBytes record, unsigned map_field) {
  bool fits = true;
  const auto on_entry = [&](WireBytes name, WireBytes feature) {
    WordHash names(map_field), values;
    names.add(record_hash(name));
    if (map_field == kFeatures) {
      fits = fits && add_feature(values, feature, ints_);
    } else {
      WireReader steps(feature);
      WireBytes step;
      while (fits && !steps.at_end()) {
        fits =
            steps.take(bytes_tag(1)) && steps.read_bytes(step) && add_feature(values, step, ints_);
      }
    }
    features_.push_back({names.finish(), values.finish(), name});
  };
  return for_each_entry(record, on_entry, map_field) == nullptr && fits;
}

const std::vector<ContentHasher::Feature>* ContentHasher::features(WireBytes record) {
  features_.clear();
  if (!has_only_maps(record) || !collect(record, kFeatures) || !collect(record, kFeatureLists)) {
    return nullptr;
  }
  const auto by_name = [](const Feature& one, const Feature& other) {
    return one.name_hash < other.name_hash;
  };
  const auto same_name = [](const Feature& one, const Feature& other) {
    return one.name_hash == other.name_hash;
  };
  std::sort(features_.begin(), features_.end(), by_name);
  const auto twice = std::adjacent_find(features_.begin(), features_.end(), same_name);
  return twice == features_.end() ? &features_ : nullptr;
}

ContentHasher::Hashes ContentHasher::hash(WireBytes record) {
  const std::uint64_t bytes = record_hash(record);
  if (features(record) == nullptr) return {bytes, bytes};
  WordHash content;
  for (const Feature& feature : features_) {
    content.add(feature.name_hash, feature.values_hash);
  }
  return {content.finish(), bytes};
}

void FeatureDifferences::note(const ContentHasher::Feature& feature) {
  Difference& difference = found_[feature.name_hash];
  if (difference.count++ == 0) {
    difference.name.assign(reinterpret_cast<const char*>(feature.name.data()), feature.name.size());
    difference.first = pairs_;
  }
}

bool FeatureDifferences::add(WireBytes one, WireBytes other) {
  const auto* const found = hasher_.features(one);
  const std::vector<ContentHasher::Feature> ours =
      found == nullptr ? std::vector<ContentHasher::Feature>() : *found;
  const auto* const theirs = hasher_.features(other);
  const bool both = found != nullptr && theirs != nullptr;
  if (both) {
    auto here = ours.begin();
    auto there = theirs->begin();
    while (here != ours.end() || there != theirs->end()) {
      if (there == theirs->end() || (here != ours.end() && here->name_hash < there->name_hash)) {
        note(*here++);
      } else if (here == ours.end() || there->name_hash < here->name_hash) {
        note(*there++);
      } else {
        if (here->values_hash != there->values_hash) note(*here);
        ++here;
        ++there;
      }
    }
  }
  ++pairs_;
  return both;
}

std::vector<FeatureDifferences::Difference> FeatureDifferences::differences() const {
  std::vector<Difference> all;
  for (const auto& [hash, difference] : found_) all.push_back(difference);
  std::sort(all.begin(), all.end(),
            [](const Difference& one, const Difference& other) { return one.name < other.name; });
  return all;
}

}  // namespace tfrfast
