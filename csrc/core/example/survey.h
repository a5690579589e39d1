// Summarises the features of some Examples, to suggest a description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/example/list.h"

namespace tfrfast {

struct SeenFeature {
  ListKind kind = ListKind::none;  // none: every list was empty
  std::size_t records = 0;         // records in which the feature is not empty
  std::size_t min_values = 0;
  std::size_t max_values = 0;
};

class Survey {
 public:
  // Throws `feature` for a record that is not an Example, or for a feature whose kind of list
  // differs from an earlier record's.
  void add(WireBytes record);

  std::size_t records() const noexcept { return records_; }
  const std::map<std::string, SeenFeature>& features() const noexcept { return features_; }

 private:
  std::size_t records_ = 0;
  std::map<std::string, SeenFeature> features_;
};

}  // namespace tfrfast
