// Summarises what the features of some Examples hold, to suggest a description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/example/list.h"

namespace tfrfast {

struct SeenFeature {
  ListKind kind = ListKind::none;  // none: seen only empty
  std::size_t records = 0;         // that have it, and not empty
  std::size_t min_values = 0;
  std::size_t max_values = 0;
};

class Survey {
 public:
  // Throws `feature` for a record that is not an Example, or in which a feature holds another kind
  // of list than before.
  void add(WireBytes record);

  std::size_t records() const noexcept { return records_; }
  const std::map<std::string, SeenFeature>& features() const noexcept { return features_; }

 private:
  std::size_t records_ = 0;
  std::map<std::string, SeenFeature> features_;
};

}  // namespace tfrfast
