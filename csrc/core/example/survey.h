// Summarises the features of Examples, to suggest a description.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/example/list.h"
#include "core/read/record_origin.h"

namespace tfrfast {

struct SeenFeature {
  ListKind kind = ListKind::none;  // none: every list was empty
  std::size_t records = 0;         // records in which the feature is not empty
  std::size_t min_values = 0;
  std::size_t max_values = 0;
  std::int64_t first_record = 0;  // the number of the first of them
};

class Survey {
 public:
  using Features = std::map<std::string, SeenFeature, std::less<>>;

  // With `examples_alone`, no record may be a SequenceExample, or hold anything else.
  explicit Survey(bool examples_alone, FindOrigin find_origin = {})
      : examples_alone_(examples_alone), find_origin_(std::move(find_origin)) {}

  // Throws `feature` for a record that is not an Example, or for a feature whose kind of list
  // differs from an earlier record's. The error names the record by its number.
  void add(WireBytes record, std::int64_t number);
  // Adds the features of later records.
  void add(const Survey& later);

  std::size_t records() const noexcept { return records_; }
  const Features& features() const noexcept { return features_; }

 private:
  void complain_if_mixed(const Features::value_type& seen, ListKind kind,
                         std::int64_t number) const;

  bool examples_alone_;
  FindOrigin find_origin_;
  std::size_t records_ = 0;
  Features features_;
  // The features of a record. The last value of a repeated key counts.
  std::vector<std::pair<Features::value_type*, WireBytes>> in_record_;
};

}  // namespace tfrfast
