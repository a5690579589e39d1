#include "core/example/sequence_rows.h"

#include <utility>

namespace tfrfast {
namespace {

std::shared_ptr<const FeatureSchema> features_in(const FeatureSchema& schema, RecordPart part) {
  std::vector<FeatureSpec> specs;
  for (std::size_t slot = 0; slot < schema.size(); ++slot) {
    if (schema[slot].spec.part == part) specs.push_back(schema[slot].spec);
  }
  return std::make_shared<const FeatureSchema>(std::move(specs));
}

std::vector<RecordPart> parts_of(const FeatureSchema& schema) {
  std::vector<RecordPart> parts;
  for (std::size_t slot = 0; slot < schema.size(); ++slot) parts.push_back(schema[slot].spec.part);
  return parts;
}

// Turns a column with a row for each step into a column with a row for each record.
Column rows_of(StepColumn list) {
  Column column = std::move(list.steps);
  column.steps = std::exchange(column.rows, list.rows);
  column.step_splits = std::exchange(column.row_splits, std::move(list.row_splits));
  return column;
}

}  // namespace

SequenceRows::SequenceRows(const FeatureSchema& schema, FindOrigin find_origin)
    : parts_(parts_of(schema)),
      decoder_(features_in(schema, RecordPart::context),
               features_in(schema, RecordPart::feature_list), std::move(find_origin)) {}

std::vector<Column> SequenceRows::finish() {
  SequenceColumns found = decoder_.finish();
  std::vector<Column> columns;
  columns.reserve(parts_.size());
  auto context = found.context.begin();
  auto list = found.sequences.begin();
  for (const RecordPart part : parts_) {
    const bool is_list = part == RecordPart::feature_list;
    columns.push_back(is_list ? rows_of(std::move(*list++)) : std::move(*context++));
  }
  return columns;
}

}  // namespace tfrfast
