#include "core/steps/step_part.h"

#include <algorithm>
#include <bit>

#include "core/base/encoding.h"
#include "core/base/error.h"
#include "core/crc32c/crc32c.h"

namespace tfrfast {
namespace {

constexpr EncodedKind kLayoutEncoding{"layout of steps", "tfSL"};
constexpr EncodedKind kPartEncoding{"part of a step file", "tfSP"};

// A checksum takes 4 bytes. Reading a step reads all pieces that share the step's checksum.
constexpr std::uint32_t kRunBytes = 1024;
constexpr std::uint32_t kMaxRunSteps = 64;

std::uint32_t run_steps_for(std::uint64_t piece_bytes) {
  const std::uint64_t steps = kRunBytes / std::max<std::uint64_t>(piece_bytes, 1);
  return static_cast<std::uint32_t>(
      std::bit_floor(std::clamp<std::uint64_t>(steps, 1, kMaxRunSteps)));
}

void code_whole_axis(Encoder& encoder, const StepAxis& axis) {
  encoder.string(axis.encode());
}
void code_whole_axis(Decoder& decoder, StepAxis& axis) {
  axis = StepAxis::decode(decoder.string());
}

constexpr auto code_layout = [](auto& coder, auto& layout) {
  code_whole_axis(coder, layout.axis);
  coder.by_name(layout.runs, [&](auto& run) {
    coder.number(run);
    coder.require(std::has_single_bit(run) && run <= kMaxRunSteps, "a run has no such length");
  });
  coder.names(layout.renamed);
};

constexpr auto code_part = [](auto& coder, auto& part) {
  coder.flag(part.left_out);
  coder.table(part.steps);
  coder.table(part.rest_counts);
  coder.table(part.rest);
  coder.list(part.features, [&](auto& each) {
    coder.string(each.name);
    coder.choice(each.form, kLastForm);
    coder.number(each.values);
    coder.number(each.run_steps);
    coder.number(each.width);
    coder.flag(each.has_sizes);
    coder.table(each.bases);
    coder.table(each.sizes);
    coder.table(each.crcs);
    coder.require(std::has_single_bit(each.run_steps) && each.bases.size() == part.steps.size(),
                  "a feature does not fit its records");
    std::uint64_t pieces = 0, runs = 0;
    for (std::size_t record = 0; record < part.steps.size(); ++record) {
      if (each.bases[record] == kNoPieces) continue;
      pieces += part.steps[record];
      runs += (std::uint64_t{part.steps[record]} + each.run_steps - 1) / each.run_steps;
    }
    coder.require(each.sizes.size() == (each.has_sizes ? pieces : 0) && each.crcs.size() == runs,
                  "a feature does not have a size and a checksum for each step");
  });
  std::uint64_t rest = 0;
  for (const std::uint32_t count : part.rest_counts) rest += count;
  coder.require(part.rest_counts.size() == part.steps.size() && rest == part.rest.size(),
                "the counts of its records do not fit");
};

}  // namespace

void refuse_values(const std::string& where, std::string_view name, std::uint32_t values,
                   std::uint32_t before) {
  throw Error(
      ErrorKind::feature,
      where + " has " + std::to_string(values) + " values of '" + std::string(name) +
          "' for each step, and records before it have " + std::to_string(before) +
          ". Give the number, or leave the feature out of `along`: along={name: values of a "
          "step, ...}");
}

StepLayout StepLayout::of(const StepAxis& axis, WireBytes sample) {
  StepLayout layout{axis, {}};
  const CutRecord cut = cut_record(sample, axis);
  for (const CutFeature& feature : cut.features) {
    if (list_kind_of(feature.form) != ListKind::bytes && !is_listed(feature.form)) continue;
    const std::uint32_t run = run_steps_for(feature.pieces.size() / cut.steps);
    if (run > 1) layout.runs[std::string(feature.name)] = run;
  }
  return layout;
}

std::string StepLayout::encode() const {
  return encode_as(kLayoutEncoding, *this, code_layout);
}

StepLayout StepLayout::decode(std::string_view encoded) {
  return decode_as<StepLayout>(kLayoutEncoding, encoded, code_layout);
}

std::string StepPart::encode() const {
  return encode_as(kPartEncoding, *this, code_part);
}

StepPart StepPart::decode(std::string_view encoded) {
  return decode_as<StepPart>(kPartEncoding, encoded, code_part);
}

void StepPartMaker::add(WireBytes record, const std::function<std::string()>& where) {
  CutRecord cut;
  try {
    cut = cut_record(record, layout_.axis);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::feature) throw;
    throw Error(ErrorKind::feature, where() + " " + error.message() + ".", error.place());
  }
  for (const std::string_view name : cut.named_twice) {
    if (layout_.renamed.contains(name)) continue;
    throw Error(ErrorKind::feature,
                where() +
                    " has a list of Features and, in its context, a feature that are both "
                    "called '" +
                    std::string(name) + "'. Give the list another name: tfr.Steps(..., rename={\"" +
                    std::string(name) + "\": ...}).");
  }
  for (const CutFeature& feature : cut.features) add_feature(record, feature, cut.steps, where);
  part_.steps.push_back(cut.steps);
  part_.rest_counts.push_back(0);
  for (FeaturePart& each : part_.features) each.bases.resize(part_.steps.size(), kNoPieces);
  if (cut.steps == 0) return;  // the other entries are of no use without a step
  for (const WireBytes& entry : cut.rest) {
    part_.rest.push_back({static_cast<std::uint32_t>(entry.data() - record.data()),
                          static_cast<std::uint32_t>(entry.size()),
                          crc32c(entry.data(), entry.size())});
    ++part_.rest_counts.back();
  }
}

void StepPartMaker::add_damaged() {
  part_.steps.push_back(0);
  part_.rest_counts.push_back(0);
  for (FeaturePart& each : part_.features) each.bases.push_back(kNoPieces);
  part_.left_out = true;
}

FeaturePart& StepPartMaker::part_of(const CutFeature& cut) {
  for (FeaturePart& each : part_.features) {
    if (each.name == cut.name && each.form == cut.form) return each;
  }
  FeaturePart made;
  made.name = cut.name;
  made.form = cut.form;
  made.values = cut.values;
  const ListKind kind = list_kind_of(cut.form);
  if (kind == ListKind::bytes || is_listed(cut.form)) {
    const auto run = layout_.runs.find(cut.name);
    if (run != layout_.runs.end()) made.run_steps = run->second;
  } else {
    const std::uint64_t value_bytes = kind == ListKind::floats ? 4 : 2;
    made.run_steps = run_steps_for(value_bytes * std::max(cut.values, 1U));
  }
  return part_.features.emplace_back(std::move(made));
}

void StepPartMaker::add_feature(WireBytes record, const CutFeature& cut, std::uint32_t steps,
                                const std::function<std::string()>& where) {
  FeaturePart& part = part_of(cut);
  if (part.values != cut.values) {
    if (!is_listed(cut.form)) refuse_values(where(), cut.name, cut.values, part.values);
    part.values = 0;  // each step of a list has a Feature of its own, of any length
  }
  part.bases.resize(part_.steps.size(), kNoPieces);
  part.bases.push_back(static_cast<std::uint32_t>(cut.pieces.data() - record.data()));
  // While all widths are equal, one width stands for the sizes of all pieces.
  const bool is_first = !part.has_sizes && part.crcs.empty();
  if (is_first) part.width = cut.width;
  if (!part.has_sizes && (cut.width == 0 || cut.width != part.width)) {
    std::uint64_t pieces = 0;
    for (std::size_t before = 0; before < part_.steps.size(); ++before) {
      if (part.bases[before] != kNoPieces) pieces += part_.steps[before];
    }
    part.sizes.assign(static_cast<std::size_t>(pieces), part.width);
    part.has_sizes = true;
    part.width = 0;
  }
  if (part.has_sizes && cut.width != 0) part.sizes.insert(part.sizes.end(), steps, cut.width);
  if (part.has_sizes && cut.width == 0) {
    part.sizes.insert(part.sizes.end(), cut.sizes.begin(), cut.sizes.end());
  }
  const std::uint8_t* next = cut.pieces.data();
  for (std::uint32_t step = 0; step < steps;) {
    const std::uint32_t end = std::min(steps, step + part.run_steps);
    std::size_t bytes = 0;
    for (; step < end; ++step) bytes += cut.width != 0 ? cut.width : cut.sizes[step];
    part.crcs.push_back(crc32c(next, bytes));
    next += bytes;
  }
}

}  // namespace tfrfast
