// How a feature's rows are arranged in its column. Each layout has a file and a line in
// layout.cpp's table.
#pragma once

#include <string_view>

namespace tfrfast {

struct Column;
struct FilledRows;

struct Layout {
  const char* name;
  // Its description has a shape, of a row or of one step of it, and may have a default.
  bool has_shape;
  // Every row has exactly the shape's values, so that its place is known before it is read. In any
  // other layout rows follow one another, and their starts are recorded.
  bool rows_are_alike;
  // Makes the column from what was read, and takes what it needs out of `rows`. Throws
  // Error(memory).
  Column (*finish)(FilledRows& rows);
};

extern const Layout kFixedLayout;   // rows of one shape
extern const Layout kPaddedLayout;  // any number of one shape, padded to the batch's longest
extern const Layout kRaggedLayout;  // any length: values, and where each row starts
extern const Layout kSparseLayout;  // any length: values, and the (row, column) of each

const Layout& layout_named(std::string_view name);  // throws Error(invalid)

}  // namespace tfrfast
