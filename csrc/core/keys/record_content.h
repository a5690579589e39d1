// What an Example says, in whatever order and form its features are written.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/example/wire.h"

namespace tfrfast {

// Hashes the contents of records. Two Examples or SequenceExamples have equal contents if they hold
// the same lists under the same names. The order of the names, and packed or unpacked numbers, make
// no difference. Other records have equal contents if their bytes are equal. So do Examples with a
// name that occurs twice, or with bytes that parsers leave out. One thread at a time.
class ContentHasher {
 public:
  struct Hashes {
    std::uint64_t content;
    std::uint64_t bytes;
  };
  Hashes hash(WireBytes record);

  // A feature. Its name lives as long as the record.
  struct Feature {
    std::uint64_t name_hash;  // differs for a feature and a feature list of one name
    std::uint64_t values_hash;
    WireBytes name;
  };
  // Returns the features in order of `name_hash`, until the next call. Null if the record is
  // compared by its bytes.
  const std::vector<Feature>* features(WireBytes record);

 private:
  bool collect(WireBytes record, unsigned map_field);

  std::vector<Feature> features_;
  std::vector<std::int64_t> ints_;
};

// The features that differ between pairs of records. One thread at a time.
class FeatureDifferences {
 public:
  struct Difference {
    std::string name;
    std::uint64_t count = 0;  // pairs
    std::size_t first = 0;    // the first such pair
  };

  // Compares the next pair. Returns false if one of the records is compared by its bytes.
  bool add(WireBytes one, WireBytes other);
  std::vector<Difference> differences() const;  // in order of their names

 private:
  void note(const ContentHasher::Feature& feature);

  ContentHasher hasher_;
  std::unordered_map<std::uint64_t, Difference> found_;
  std::size_t pairs_ = 0;
};

}  // namespace tfrfast
