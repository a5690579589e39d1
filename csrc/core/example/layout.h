// The arrangement of a feature's rows in its column. Each layout has a file and a line in
// layout.cpp's table.
#pragma once

#include <string_view>

namespace tfrfast {

struct Column;
struct FilledRows;

struct Layout {
  const char* name;
  // The description has a shape (of a row, or of one step of a row) and may have a default.
  bool has_shape;
  // Every row has exactly the shape's values, so each row's place is known in advance. In the other
  // layouts, rows follow one another and their starts are recorded.
  bool rows_are_alike;
  // Makes the column from the filled rows, and takes the buffers out of `rows`. Throws
  // Error(memory).
  Column (*finish)(FilledRows& rows);
};

extern const Layout kFixedLayout;   // rows of one shape
extern const Layout kPaddedLayout;  // steps of one shape, padded to the batch's longest row
extern const Layout kRaggedLayout;  // any length: values, and where each row starts
extern const Layout kPackedLayout;  // rows of tokens, each with the values of several records
// Not features of records, but facts about packed records:
extern const Layout kSegmentsLayout;   // the number of each token's record in its row, from 1 on
extern const Layout kPositionsLayout;  // the number of each token in its record
extern const Layout kStartsLayout;     // of each record: row, column in each budget, piece
extern const Layout kSparseLayout;     // any length: values, and the (row, column) of each

const Layout& layout_named(std::string_view name);  // throws Error(invalid)

}  // namespace tfrfast
