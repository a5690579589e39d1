#include "core/example/sequence.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace tfrfast {
namespace {

void refuse_other(const FeatureSpec& spec) {
  if (!spec.image && !spec.path) return;
  throw Error(ErrorKind::invalid, "Feature '" + spec.name + "': " +
                                      (spec.path ? "parse_example() parses fields of a Message."
                                                 : "an Image is a feature of an Example."));
}

}  // namespace

SequenceDecoder::SequenceDecoder(std::shared_ptr<const FeatureSchema> context,
                                 std::shared_ptr<const FeatureSchema> sequences,
                                 FindOrigin find_origin)
    : context_(std::move(context)),
      sequences_(std::move(sequences)),
      find_origin_(std::move(find_origin)),
      step_counts_(sequences_->size()),
      row_splits_(sequences_->size()),
      context_entries_(context_->size()),
      sequence_entries_(sequences_->size()) {
  for (std::size_t slot = 0; slot < context_->size(); ++slot) {
    const CompiledFeature& feature = (*context_)[slot];
    refuse_other(feature.spec);
    if (feature.spec.layout == &kPaddedLayout) {
      throw Error(ErrorKind::invalid, "Feature '" + feature.spec.name +
                                          "': a FixedLenSequence describes a feature list, not a "
                                          "context feature.");
    }
    context_columns_.emplace_back(feature);
  }
  step_features_.reserve(sequences_->size());  // the builders point into the vector
  for (std::size_t slot = 0; slot < sequences_->size(); ++slot) {
    CompiledFeature steps = (*sequences_)[slot];
    refuse_other(steps.spec);
    if (steps.spec.layout == &kFixedLayout) {
      throw Error(ErrorKind::invalid, "Feature '" + steps.spec.name +
                                          "': a FixedLen describes a context feature. Describe a "
                                          "feature list as FixedLenSequence or as VarLen.");
    }
    steps.spec.layout = &kRaggedLayout;
    step_features_.push_back(std::move(steps));
    step_columns_.emplace_back(step_features_.back());
  }
}

void SequenceDecoder::begin(std::size_t rows) {
  rows_ = rows;
  next_row_ = 0;
  for (ColumnBuilder& column : context_columns_) column.begin(rows);
  for (std::size_t slot = 0; slot < step_columns_.size(); ++slot) {
    step_columns_[slot].begin(0);
    step_counts_[slot] = 0;
    row_splits_[slot] = PooledBuffer((rows + 1) * sizeof(std::int64_t));
  }
}

void SequenceDecoder::decode(std::span<const WireBytes> records,
                             std::span<const std::int64_t> record_numbers) {
  if (records.size() > rows_ - next_row_) {
    throw Error(ErrorKind::out_of_range, "There are more records than rows in the batch.");
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::int64_t number =
        record_numbers.empty() ? static_cast<std::int64_t>(next_row_) : record_numbers[i];
    const RecordPlace place{number, &find_origin_};
    collect(records[i], place);
    for (std::uint32_t slot = 0; slot < context_->size(); ++slot) {
      put_context(slot, records[i], place);
    }
    for (std::uint32_t slot = 0; slot < sequences_->size(); ++slot) {
      row_splits_[slot].as<std::int64_t>()[next_row_] =
          static_cast<std::int64_t>(step_counts_[slot]);
      put_steps(slot, records[i], place);
    }
    ++next_row_;
  }
}

void SequenceDecoder::collect(WireBytes record, const RecordPlace& place) {
  if (record.size() >= kLongestMessage) complain_too_long(place, record.size());
  std::fill(context_entries_.begin(), context_entries_.end(), FoundValue{});
  std::fill(sequence_entries_.begin(), sequence_entries_.end(), FoundValue{});
  const auto malformed_at = [&](const WireReader& reader) {
    complain_malformed(place, static_cast<std::size_t>(reader.position() - record.data()));
  };
  WireReader example(record);
  std::uint32_t length;
  while (!example.at_end()) {
    const bool is_context = example.take(bytes_tag(1));
    if (!is_context && !example.take(bytes_tag(2))) {
      if (!example.skip_field()) malformed_at(example);
      continue;
    }
    const FeatureSchema& schema = is_context ? *context_ : *sequences_;
    std::vector<FoundValue>& entries = is_context ? context_entries_ : sequence_entries_;
    if (!example.read_length(length)) malformed_at(example);
    WireReader features(example.enter(length));
    while (!features.at_end()) {
      if (!features.take(bytes_tag(1)) || !features.read_length(length)) malformed_at(features);
      WireReader entry(features.enter(length));
      WireBytes key, value;
      if (!entry.take(bytes_tag(1)) || !entry.read_bytes(key) || !entry.take(bytes_tag(2)) ||
          !entry.read_bytes(value) || !entry.at_end()) {
        malformed_at(entry);
      }
      const std::uint32_t slot = schema.find(key);
      if (slot != FeatureSchema::kUnknown) entries[slot] = {value, true};
    }
  }
}

void SequenceDecoder::put_context(std::uint32_t slot, WireBytes record, const RecordPlace& place) {
  const CompiledFeature& feature = (*context_)[slot];
  ColumnBuilder& column = context_columns_[slot];
  const FoundValue& entry = context_entries_[slot];
  if (!entry.present) {
    if (feature.spec.layout != &kFixedLayout) return;
    if (!feature.spec.default_value) complain_missing(place, feature.spec);
    column.put_default(next_row_);
    return;
  }
  Fit fit;
  if (entry.value.empty()) {
    fit = column.put_empty(next_row_);
  } else {
    if (entry.value[0] != bytes_tag(static_cast<unsigned>(feature.kind))) {
      ListKind kind;
      if (!read_list_kind(entry.value, kind)) complain_no_list(place, feature.spec);
      complain_kind(place, feature.spec, kind);
    }
    fit = column.put_list(next_row_,
                          find_list(entry.value, feature.kind, Dialect::sequence_example), record);
  }
  if (fit != Fit::ok) complain_misfit(place, feature, fit, column);
}

void SequenceDecoder::put_steps(std::uint32_t slot, WireBytes record, const RecordPlace& place) {
  const CompiledFeature& feature = (*sequences_)[slot];
  const FoundValue& entry = sequence_entries_[slot];
  if (!entry.present && feature.spec.required) complain_missing(place, feature.spec);
  ColumnBuilder& column = step_columns_[slot];
  const std::uint8_t tag = bytes_tag(static_cast<unsigned>(feature.kind));
  const auto refuse = [&] { complain_count(place, feature, Fit::malformed, 0); };
  const std::uint8_t* const end = entry.value.data() + entry.value.size();
  WireReader list(entry.value);
  while (!list.at_end()) {
    std::uint32_t bytes = 0;
    if (!list.take(bytes_tag(1)) || !list.read_length(bytes) || bytes == 1) refuse();
    const std::size_t step = step_counts_[slot]++;
    Fit fit = Fit::ok;
    if (bytes > 2) {
      const WireBytes step_feature = WireReader(list).enter(bytes);
      if (step_feature.empty() || step_feature[0] != tag) {
        ListKind kind;
        if (!read_list_kind(step_feature, kind) || kind == ListKind::none) refuse();
        complain_kind(place, feature.spec, kind);
      }
      const FeatureList found = find_list(step_feature, feature.kind, Dialect::sequence_example);
      fit = column.put_list(step, found, record);
      // Like TensorFlow, continue where reading stopped, even before the end of the step.
      if (fit == Fit::ok) list = WireReader({found.end, end});
    } else {
      std::uint32_t length;
      if (bytes == 2 && (!list.take(tag) || !list.read_length(length) || length != 0)) refuse();
      fit = column.put_empty(step);
    }
    if (fit != Fit::ok) complain_misfit(place, feature, fit, column);
    if (feature.spec.layout == &kPaddedLayout && column.last_count() != feature.row_values) {
      complain_count(place, feature, Fit::wrong_count,
                     static_cast<std::int64_t>(column.last_count()));
    }
  }
}

SequenceColumns SequenceDecoder::finish() {
  SequenceColumns columns;
  for (ColumnBuilder& column : context_columns_)
    columns.context.push_back(column.finish(next_row_));
  for (std::size_t slot = 0; slot < step_columns_.size(); ++slot) {
    row_splits_[slot].as<std::int64_t>()[next_row_] = static_cast<std::int64_t>(step_counts_[slot]);
    columns.sequences.push_back(
        {step_columns_[slot].finish(step_counts_[slot]), next_row_, std::move(row_splits_[slot])});
  }
  rows_ = next_row_ = 0;
  return columns;
}

}  // namespace tfrfast
