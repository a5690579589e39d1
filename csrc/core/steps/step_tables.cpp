#include "core/steps/step_tables.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "core/base/encoding.h"
#include "core/base/error.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/local/sidecar.h"

namespace tfrfast {
namespace {

// The tables of a body, each after the one before.
class Body {
 public:
  // Returns where the table begins.
  template <class T>
  std::uint64_t append(std::vector<T>&& values) {
    const std::uint64_t at = (end_ + kStepAlignment - 1) / kStepAlignment * kStepAlignment;
    const auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(kept->data());
    end_ = at + kept->size() * sizeof(T);
    tables_.push_back({at, {bytes, kept->size() * sizeof(T)}, kept});
    return at;
  }
  std::uint64_t bytes() const { return end_; }
  std::vector<StepFileBytes::Table> finish() { return std::move(tables_); }

 private:
  std::uint64_t end_ = 0;
  std::vector<StepFileBytes::Table> tables_;
};

void add_number(std::string& out, std::uint64_t value, std::size_t bytes) {
  out.append(reinterpret_cast<const char*>(&value), bytes);
}

void add_text(std::string& out, std::string_view text) {
  add_number(out, text.size(), 4);
  out += text;
}

}  // namespace

StepTables::FeatureTables& StepTables::feature_of(const FeaturePart& part) {
  for (FeatureTables& each : features_) {
    if (each.made.name == part.name && each.made.form == part.form) return each;
  }
  FeatureTables made;
  made.made.name = part.name;
  made.made.form = part.form;
  made.made.values = part.values;
  made.made.run_steps = part.run_steps;
  made.made.width = part.width;
  return features_.emplace_back(std::move(made));
}

void StepTables::append(const StepPart& part) {
  const std::size_t records = rest_counts_.size();
  for (const FeaturePart& each : part.features) {
    FeatureTables& feature = feature_of(each);
    FeaturePart& made = feature.made;
    if (is_listed(made.form) && made.values != each.values) made.values = 0;
    if ((!is_listed(made.form) && made.values != each.values) || made.run_steps != each.run_steps) {
      refuse_values("A record among " + std::to_string(records) + " to " +
                        std::to_string(records + part.steps.size()),
                    each.name, each.values, made.values);
    }
    if (!made.has_sizes && (each.has_sizes || each.width != made.width)) {
      list_sizes(feature, records);
    }
  }
  for (const std::uint32_t steps : part.steps) first_steps_.push_back(first_steps_.back() + steps);
  for (const FeaturePart& each : part.features) append_feature(part, each);
  // Features that this part lacks.
  for (FeatureTables& each : features_) {
    FeaturePart& made = each.made;
    made.bases.resize(records + part.steps.size(), kNoPieces);
    if (!made.has_sizes) continue;
    const std::vector<std::uint64_t> same(
        static_cast<std::size_t>(first_steps_.back() - each.ends.size()), each.end);
    each.ends.append(same);
  }
  rest_counts_.insert(rest_counts_.end(), part.rest_counts.begin(), part.rest_counts.end());
  rest_.insert(rest_.end(), part.rest.begin(), part.rest.end());
  if (rest_.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorKind::invalid,
                "The records have more features than a step file has space for.");
  }
  left_out_ = left_out_ || part.left_out;
}

void StepTables::list_sizes(FeatureTables& feature, std::size_t records) {
  FeaturePart& made = feature.made;
  made.bases.resize(records, kNoPieces);
  std::vector<std::uint64_t> begins;
  for (std::size_t record = 0; record < records; ++record) {
    begins.clear();
    for (std::uint64_t step = first_steps_[record]; step < first_steps_[record + 1]; ++step) {
      begins.push_back(feature.end);
      if (made.bases[record] != kNoPieces) feature.end += made.width;
    }
    feature.ends.append(begins);
  }
  made.has_sizes = true;
  made.width = 0;
}

void StepTables::append_feature(const StepPart& part, const FeaturePart& from) {
  FeatureTables& feature = feature_of(from);
  FeaturePart& made = feature.made;
  const std::size_t before = rest_counts_.size();
  made.bases.resize(before, kNoPieces);
  made.bases.insert(made.bases.end(), from.bases.begin(), from.bases.end());
  const std::uint64_t run = made.run_steps;
  std::size_t next_size = 0, next_crc = 0;
  std::vector<std::uint64_t> begins;
  for (std::size_t record = 0; record < part.steps.size(); ++record) {
    const std::uint32_t steps = part.steps[record];
    const bool has_it = from.bases[record] != kNoPieces;
    if (made.has_sizes) {
      begins.clear();
      for (std::uint32_t step = 0; step < steps; ++step) {
        begins.push_back(feature.end);
        if (has_it) feature.end += from.has_sizes ? from.sizes[next_size++] : from.width;
      }
      feature.ends.append(begins);
    }
    if (!has_it) continue;
    const std::uint64_t first =
        first_run_of(before + record, first_steps_[before + record], made.run_steps);
    const std::size_t runs = static_cast<std::size_t>((steps + run - 1) / run);
    made.crcs.resize(static_cast<std::size_t>(first), 0);
    made.crcs.insert(made.crcs.end(), from.crcs.begin() + static_cast<long>(next_crc),
                     from.crcs.begin() + static_cast<long>(next_crc + runs));
    next_crc += runs;
  }
}

StepFileBytes StepTables::finish(std::uint64_t fingerprint, std::uint64_t stamp) && {
  if (features_.empty()) {
    throw Error(ErrorKind::invalid,
                "No record has any step: `along` names no feature of these records.");
  }
  std::sort(features_.begin(), features_.end(), [](const FeatureTables& a, const FeatureTables& b) {
    return a.made.name != b.made.name ? a.made.name < b.made.name : a.made.form < b.made.form;
  });
  const std::size_t records = rest_counts_.size();
  Body body;
  const std::uint64_t steps = step_count();
  const std::uint64_t entries = rest_.size();
  body.append(std::move(first_steps_));
  std::vector<std::uint32_t> rows;
  rows.reserve((records + 1) * (1 + features_.size()));
  std::uint32_t rest = 0;
  for (std::size_t record = 0; record <= records; ++record) {
    rows.push_back(rest);
    if (record < records) rest += rest_counts_[record];
    for (const FeatureTables& each : features_) {
      rows.push_back(record < records ? each.made.bases[record] : kNoPieces);
    }
  }
  const std::uint64_t rows_at = body.append(std::move(rows));
  const std::uint64_t rest_at = body.append(std::move(rest_));

  std::string description;
  add_text(description, axis_.encode());
  add_number(description, rows_at, 8);
  add_number(description, rest_at, 8);
  add_number(description, features_.size(), 4);
  for (FeatureTables& each : features_) {
    FeaturePart& made = each.made;
    PackedBytes packed;
    if (made.has_sizes) {
      each.ends.append(std::span(&each.end, 1));
      packed = std::move(each.ends).finish();
    }
    add_text(description, made.name);
    add_number(description, static_cast<std::uint64_t>(made.form), 4);
    add_number(description, made.values, 4);
    add_number(description, made.run_steps, 4);
    add_number(description, made.width, 4);
    const std::uint64_t crcs = made.crcs.size(), residuals = packed.residuals.size();
    add_number(description, body.append(std::move(made.crcs)), 8);
    add_number(description, crcs, 8);
    add_number(description, body.append(std::move(packed.blocks)), 8);
    add_number(description, body.append(std::move(packed.residuals)), 8);
    add_number(description, residuals, 8);
  }
  StepFileBytes made(body.bytes(), body.finish());
  std::string crcs;
  std::uint8_t block[kStepBlockBytes];
  for (std::uint64_t at = 0; at < made.size(); at += kStepBlockBytes) {
    const auto count = static_cast<std::size_t>(std::min(kStepBlockBytes, made.size() - at));
    made.read(at, {block, count});
    add_number(crcs, crc32c(block, count), 4);
  }
  StepFileHeader header{};
  std::memcpy(header.magic, kStepsMagic, sizeof header.magic);
  header.version = kStepFileVersion;
  header.flags = left_out_ ? kStepsLeftOut : 0;
  header.record_count = records;
  header.step_count = steps;
  header.rest_count = entries;
  header.fingerprint = fingerprint;
  header.stamp = stamp;
  header.description_bytes = description.size();
  std::string head = description + crcs;
  const std::size_t end = sizeof header + head.size();
  head.resize(head.size() + (kStepAlignment - end % kStepAlignment) % kStepAlignment);
  header.body_at = sizeof header + head.size();
  header.body_bytes = made.size();
  const auto* const packed = reinterpret_cast<const std::uint8_t*>(&header);
  std::uint32_t crc = crc32c(packed, offsetof(StepFileHeader, header_crc));
  crc = crc32c(reinterpret_cast<const std::uint8_t*>(head.data()), head.size(), crc);
  header.header_crc = crc;
  made.set_head(std::string(reinterpret_cast<const char*>(&header), sizeof header) + head);
  return made;
}

void StepFileBytes::read(std::uint64_t at, std::span<std::uint8_t> out) const noexcept {
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  const std::uint64_t end = at + out.size();
  const auto copy = [&](std::uint64_t begin, std::span<const std::uint8_t> from) {
    const std::uint64_t first = std::max(at, begin), last = std::min(end, begin + from.size());
    if (first >= last) return;
    std::memcpy(out.data() + (first - at), from.data() + (first - begin),
                static_cast<std::size_t>(last - first));
  };
  copy(0, {reinterpret_cast<const std::uint8_t*>(head_.data()), head_.size()});
  for (const Table& each : tables_) copy(head_.size() + each.at, each.bytes);
}

}  // namespace tfrfast
