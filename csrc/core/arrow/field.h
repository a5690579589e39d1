// The type of an Arrow column and of its child columns.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/arrow/c_data.h"

namespace tfrfast {

// `format` is a format string of Arrow's C data interface: "l" is int64, "Z" large binary, "+L" a
// large list, "+w:3" a list of exactly three items, "+s" a struct.
struct ArrowField {
  std::string name;
  std::string format;
  bool nullable = false;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<ArrowField> children;
  // The type of a dictionary's values. Null if the column is not a dictionary.
  std::shared_ptr<const ArrowField> dictionary;

  bool is_list() const noexcept { return format == "+L"; }
  bool is_fixed_list() const noexcept { return format.starts_with("+w:"); }
  std::size_t fixed_list_size() const;  // throws Error(invalid) for a malformed size
  // The number of innermost values in a row: the product of the sizes of the fixed lists.
  std::size_t row_values() const;
  // The innermost column of nested fixed lists. May be this column.
  const ArrowField& innermost() const noexcept;
};

// Writes the type to `out`, as a copy that `out` owns.
void export_schema(const ArrowField& field, ArrowSchema* out);

}  // namespace tfrfast
