#include "core/steps/step_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <numeric>

#include "core/base/hashing.h"
#include "core/base/memory.h"
#include "core/base/numbering.h"
#include "core/base/parallel.h"
#include "core/crc32c/crc32c.h"
#include "core/crc32c/hex.h"
#include "core/example/entry_head.h"
#include "core/read/bad_row.h"
#include "core/read/row_order.h"
#include "core/read/source_spec.h"
#include "core/shard/framing.h"
#include "core/steps/step_spec.h"
#include "core/storage/fault_guard.h"

namespace tfrfast {
namespace {

// The cost of a step, however short, in bytes.
constexpr std::uint64_t kStepCostBytes = 4096;
constexpr std::uint64_t kMaxMeanBytes = std::uint64_t{1} << 32;

EntryHead head_of(const std::string& key, StepForm form, std::uint64_t list_bytes) noexcept {
  return {key, list_kind_of(form), is_packed(form), list_bytes};
}

}  // namespace

// Some steps in reading order, with all parts of their Examples.
struct StepReader::Plan {
  // Contiguous pieces, or zeros in their place.
  struct PieceSpan {
    std::uint32_t feature = 0;
    std::uint32_t base = 0;       // where the feature's pieces begin in the record
    std::uint32_t first_run = 0;  // reading begins with this run
    std::uint32_t end_run = 0;    // equals first_run for zeros
    std::uint64_t read_at = 0;    // place of the runs in the record
    std::uint64_t read_bytes = 0;
    std::uint64_t skipped_bytes = 0;  // read bytes before the needed pieces
    std::uint64_t bytes = 0;          // of the needed pieces
    std::uint32_t zeros = 0;          // steps
    // Values that lie apart, each step's in a Feature of its own.
    std::size_t first_listed = 0, end_listed = 0;
    bool is_whole() const noexcept { return read_bytes == bytes; }
  };
  // The values of a step in a list.
  struct ListedValues {
    std::uint64_t end = 0;  // in the segment's runs
    std::uint64_t bytes = 0;
  };
  // A feature of a step.
  struct ReadFeature {
    std::uint32_t feature = 0;
    std::uint32_t first_segment = 0;
    std::uint32_t end_segment = 0;
    std::uint64_t bytes = 0;  // of its list
    std::uint32_t first_valid = 0;
    std::uint32_t valid_count = 0;
  };
  struct LaidOutStep {
    Row row;  // the episode's record
    std::uint32_t steps = 0;
    std::uint64_t first_step = 0;  // number of the episode's first step in the file
    std::size_t first_entry = 0, end_entry = 0;
    std::size_t first_rest = 0, end_rest = 0;
    std::size_t first_absent = 0, end_absent = 0;
    std::uint64_t content_bytes = 0;  // of the map
    std::uint64_t bytes() const noexcept { return field_bytes(content_bytes); }
  };
  std::vector<LaidOutStep> steps;
  std::vector<ReadFeature> entries;
  std::vector<PieceSpan> segments;
  std::vector<ListedValues> listed;
  std::vector<std::uint8_t> valid;  // 1 for each real step of a window
  std::vector<RestEntry> rest;
  std::vector<std::uint32_t> absent;  // features that a step lacks

  void add_ranges(std::size_t step, std::vector<StoredRange>& ranges) const {
    const LaidOutStep& each = steps[step];
    const StoredFile* const file = each.row.shard->file.get();
    const std::uint64_t payload = each.row.frame.offset + kHeaderBytes;
    for (std::size_t e = each.first_entry; e < each.end_entry; ++e) {
      for (std::uint32_t s = entries[e].first_segment; s < entries[e].end_segment; ++s) {
        if (segments[s].read_bytes == 0) continue;
        ranges.push_back({file, payload + segments[s].read_at, segments[s].read_bytes});
      }
    }
    for (std::size_t r = each.first_rest; r < each.end_rest; ++r) {
      if (rest[r].bytes != 0) ranges.push_back({file, payload + rest[r].offset, rest[r].bytes});
    }
  }
};

// Adds steps to a plan.
class StepReader::Planning {
 public:
  Planning(const StepReader& reader, Plan& plan, std::uint64_t epoch)
      : reader_(reader),
        file_(*reader.file_),
        features_(reader.contents_.features),
        plan_(plan),
        epoch_(epoch),
        bases_(file_.features().size()) {}

  void add(std::uint64_t number, const Row& row) {
    const StepOrigin place = reader_.place(number);
    const std::vector<std::uint64_t>& first_steps = file_.first_steps();
    Plan::LaidOutStep step;
    step.row = row;
    step.first_step = first_steps[static_cast<std::size_t>(place.record)];
    step.steps = static_cast<std::uint32_t>(
        first_steps[static_cast<std::size_t>(place.record) + 1] - step.first_step);
    StepFile::Entries rest = file_.row(place.record, bases_.data());
    if (!reader_.contents_.has_rest) rest = {};
    step.first_entry = plan_.entries.size();
    drawn_.clear();
    for (const OneOf& each : reader_.contents_.choices) {
      drawn_.push_back(each.draw(step.first_step + place.step, epoch_));
    }
    lacking_.clear();
    for (std::uint32_t f = 0; f < features_.size(); ++f) {
      const auto& one_of = features_[f].one_of;
      if (one_of && drawn_[one_of->choice] != one_of->number) continue;
      const std::uint32_t base = bases_[features_[f].number];
      if (base != kNoPieces) {
        add_entry(step, place.step, f, base);
      } else if (features_[f].valid_count() != 0) {
        lacking_.push_back(f);
      }
    }
    for (const std::uint32_t f : lacking_) add_lacking(step, f);
    step.end_entry = plan_.entries.size();
    add_absent(step);
    step.first_rest = plan_.rest.size();
    plan_.rest.resize(step.first_rest + rest.count);
    file_.rest(rest, plan_.rest.data() + step.first_rest);
    step.end_rest = plan_.rest.size();
    for (std::size_t r = step.first_rest; r < step.end_rest; ++r) {
      const RestEntry& entry = plan_.rest[r];
      check_inside(step, entry.offset, entry.bytes);
      step.content_bytes += field_bytes(entry.bytes);
    }
    plan_.steps.push_back(step);
  }

  // The begin of a step's piece in the record. `step` may be the number of steps.
  static std::uint64_t piece_at(const StepFile& file, const StepFeature& feature,
                                std::uint32_t base, std::uint64_t first_step, std::uint32_t step) {
    if (feature.width != 0) return base + std::uint64_t{feature.width} * step;
    return base + file.bytes_before(feature, first_step + step) -
           file.bytes_before(feature, first_step);
  }

 private:
  void add_absent(Plan::LaidOutStep& step) {
    step.first_absent = plan_.absent.size();
    for (std::uint32_t a = 0; a < reader_.contents_.absent.size(); ++a) {
      const StepContents::Absent& absent = reader_.contents_.absent[a];
      const auto begin = plan_.entries.begin() + static_cast<std::ptrdiff_t>(step.first_entry);
      if (std::any_of(begin, plan_.entries.end(), [&](const Plan::ReadFeature& entry) {
            const StepContents::Feature& feature = features_[entry.feature];
            return (entry.bytes != 0 && feature.key == absent.key) ||
                   (entry.valid_count != 0 && feature.valid_key == absent.key);
          })) {
        continue;
      }
      plan_.absent.push_back(a);
      step.content_bytes += field_bytes(absent.entry.size());
    }
    step.end_absent = plan_.absent.size();
  }

  void add_entry(Plan::LaidOutStep& step, std::uint32_t at, std::uint32_t f, std::uint32_t base) {
    const StepContents::Feature& feature = features_[f];
    Plan::ReadFeature entry;
    entry.feature = f;
    entry.first_segment = static_cast<std::uint32_t>(plan_.segments.size());
    entry.first_valid = static_cast<std::uint32_t>(plan_.valid.size());
    if (feature.window) {
      add_window(step, entry, base, at);
    } else if (feature.later) {
      const LaterStep::Drawn drawn = feature.later->draw(step.first_step + at, at, step.steps);
      plan_.valid.push_back(drawn.is_real ? 1 : 0);
      add_pieces(step, entry, base, drawn.step, drawn.step + 1);
    } else {
      add_pieces(step, entry, base, at, at + 1);
    }
    entry.end_segment = static_cast<std::uint32_t>(plan_.segments.size());
    entry.valid_count = static_cast<std::uint32_t>(plan_.valid.size() - entry.first_valid);
    if (entry.bytes == 0) {  // left out, like a feature without values
      plan_.segments.resize(entry.first_segment);
      entry.end_segment = entry.first_segment;
    } else {
      step.content_bytes += head_of(feature.key, feature.in_file->form, entry.bytes).entry_bytes();
    }
    if (entry.valid_count != 0) {
      step.content_bytes +=
          head_of(feature.valid_key, StepForm::packed_ints, entry.valid_count).entry_bytes();
    }
    if (entry.bytes != 0 || entry.valid_count != 0) plan_.entries.push_back(entry);
  }

  // Adds the mark that no step of a feature is real, unless the episode has the feature in another
  // form.
  void add_lacking(Plan::LaidOutStep& step, std::uint32_t f) {
    const StepContents::Feature& feature = features_[f];
    const auto begin = plan_.entries.begin() + static_cast<std::ptrdiff_t>(step.first_entry);
    if (std::any_of(begin, plan_.entries.end(), [&](const Plan::ReadFeature& entry) {
          return features_[entry.feature].name == feature.name;
        })) {
      return;
    }
    Plan::ReadFeature entry;
    entry.feature = f;
    entry.first_segment = entry.end_segment = static_cast<std::uint32_t>(plan_.segments.size());
    entry.first_valid = static_cast<std::uint32_t>(plan_.valid.size());
    entry.valid_count = static_cast<std::uint32_t>(feature.valid_count());
    plan_.valid.resize(plan_.valid.size() + entry.valid_count, 0);
    step.content_bytes +=
        head_of(feature.valid_key, StepForm::packed_ints, entry.valid_count).entry_bytes();
    plan_.entries.push_back(entry);
  }

  void add_window(const Plan::LaidOutStep& step, Plan::ReadFeature& entry, std::uint32_t base,
                  std::uint32_t at) {
    const StepWindow& window = *features_[entry.feature].window;
    const std::int64_t stride = window.stride;
    const std::int64_t last = std::int64_t{step.steps} - 1;
    // Consecutive pieces are read together.
    std::uint32_t first = 0, end = 0;
    const auto flush = [&] {
      if (first < end) add_pieces(step, entry, base, first, end);
      first = end = 0;
    };
    for (std::int64_t j = -std::int64_t{window.before}; j <= std::int64_t{window.after}; ++j) {
      const std::int64_t wanted = at + j * stride;
      const bool is_real = wanted >= 0 && wanted <= last;
      plan_.valid.push_back(is_real ? 1 : 0);
      if (!is_real && window.pad == StepWindow::Pad::zeros) {
        flush();
        add_zeros(entry);
        continue;
      }
      const auto here = static_cast<std::uint32_t>(std::clamp<std::int64_t>(wanted, 0, last));
      if (first == end || here != end) {
        flush();
        first = here;
      }
      end = here + 1;
    }
    flush();
  }

  void add_zeros(Plan::ReadFeature& entry) {
    const std::uint64_t bytes = features_[entry.feature].zeros.size();
    Plan::PieceSpan segment;
    segment.feature = entry.feature;
    segment.bytes = bytes;
    segment.zeros = 1;
    plan_.segments.push_back(segment);
    entry.bytes += bytes;
  }

  void add_pieces(const Plan::LaidOutStep& step, Plan::ReadFeature& entry, std::uint32_t base,
                  std::uint32_t first, std::uint32_t end) {
    const StepFeature& feature = *features_[entry.feature].in_file;
    const std::uint32_t run = feature.run_steps;
    Plan::PieceSpan segment;
    segment.feature = entry.feature;
    segment.base = base;
    segment.first_run = first / run;
    segment.end_run = (end - 1) / run + 1;
    const std::uint32_t read_first = segment.first_run * run;
    const std::uint32_t read_end = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{segment.end_run} * run, step.steps));
    const auto at = [&](std::uint32_t number) {
      return piece_at(file_, feature, base, step.first_step, number);
    };
    segment.read_at = at(read_first);
    const std::uint64_t begin = read_first == first ? segment.read_at : at(first);
    const std::uint64_t stop = at(end);
    const std::uint64_t read_stop = read_end == end ? stop : at(read_end);
    if (begin < segment.read_at || stop < begin || read_stop < stop) refuse();
    segment.read_bytes = read_stop - segment.read_at;
    segment.skipped_bytes = begin - segment.read_at;
    segment.bytes = stop - begin;
    if (is_listed(feature.form)) {
      segment.first_listed = plan_.listed.size();
      segment.bytes = 0;
      for (std::uint64_t from = begin; first < end; ++first) {
        const std::uint64_t next = at(first + 1);
        const std::optional<std::uint64_t> bytes = value_bytes_of(feature.form, next - from);
        if (next < from || next > stop || !bytes) refuse();
        plan_.listed.push_back({next - segment.read_at, *bytes});
        segment.bytes += *bytes;
        from = next;
      }
      segment.end_listed = plan_.listed.size();
    }
    check_inside(step, segment.read_at, segment.read_bytes);
    plan_.segments.push_back(segment);
    entry.bytes += segment.bytes;
  }

  void check_inside(const Plan::LaidOutStep& step, std::uint64_t at, std::uint64_t bytes) const {
    const std::uint64_t payload = step.row.frame.payload_bytes;
    if (at > payload || bytes > payload - at) refuse();
  }

  [[noreturn]] void refuse() const {
    throw Error(ErrorKind::corrupt,
                "'" + file_.path() +
                    "' is not an intact step file: it has a piece that does not lie in its record. "
                    "Build it again: tfr.build_steps(...).",
                {file_.path(), {}, {}});
  }

  const StepReader& reader_;
  const StepFile& file_;
  const std::vector<StepContents::Feature>& features_;
  Plan& plan_;
  const std::uint64_t epoch_;
  std::vector<std::uint32_t> bases_;    // of all features of the file, in the current record
  std::vector<std::size_t> drawn_;      // of each choice
  std::vector<std::uint32_t> lacking_;  // features that the current record lacks
};

// Reads the steps of a plan, each to its place. One thread at a time.
class StepReader::Reading {
 public:
  Reading(const StepReader& reader, const Plan& plan)
      : reader_(reader), features_(reader.contents_.features), plan_(plan) {}

  // Writes the Example to `out`, which must have space for the Example. Throws Error io and the
  // like. Returns damage, if any.
  std::optional<BadRow> read(std::size_t number, std::uint8_t* out) {
    const Plan::LaidOutStep& step = plan_.steps[number];
    lay_out(step, out);
    const StoredFile& file = *step.row.shard->file;
    bool looks_elsewhere = false;
    for (;;) {
      copy(file, looks_elsewhere);
      const std::optional<Wrong> wrong = first_wrong(step);
      if (!wrong) break;
      const FileRange range{step.row.frame.offset + kHeaderBytes + wrong->at, wrong->bytes};
      // The local copy of a shard may be damaged while the shard is intact.
      if (looks_elsewhere || !file.mend(range)) return explain(step, *wrong, range);
      looks_elsewhere = true;
    }
    for (std::size_t r = reads_.size(); r < ranges_.size(); ++r) {
      reader_.contents_.check_rest({ranges_[r].out, ranges_[r].bytes});
    }
    place_pieces();
    return {};
  }

 private:
  // The bytes under one checksum, and the two checksums.
  struct Wrong {
    std::uint64_t at = 0;  // in the record
    std::uint64_t bytes = 0;
    std::uint32_t computed = 0;
    std::uint32_t expected = 0;
    const std::string* feature = nullptr;  // null: an entry of the episode
  };
  // A segment that was read to one place and is needed in another.
  struct Move {
    std::size_t scratch = 0;
    std::uint8_t* out = nullptr;
    std::size_t bytes = 0;
  };

  // Writes everything but the pieces, and lists the ranges to read.
  void lay_out(const Plan::LaidOutStep& step, std::uint8_t* out) {
    ranges_.clear();
    moves_.clear();
    reads_.clear();
    const std::uint64_t payload = step.row.frame.offset + kHeaderBytes;
    std::size_t scratch_bytes = 0;
    for (std::size_t e = step.first_entry; e < step.end_entry; ++e) {
      for (std::uint32_t s = plan_.entries[e].first_segment; s < plan_.entries[e].end_segment;
           ++s) {
        if (!plan_.segments[s].is_whole()) scratch_bytes += plan_.segments[s].read_bytes;
      }
    }
    if (scratch_.size() < scratch_bytes) scratch_.resize(scratch_bytes);
    std::size_t scratch = 0;
    out = put_field_head(out, 1, step.content_bytes);
    for (std::size_t e = step.first_entry; e < step.end_entry; ++e) {
      const Plan::ReadFeature& entry = plan_.entries[e];
      const StepContents::Feature& feature = features_[entry.feature];
      if (entry.bytes != 0) {
        out = head_of(feature.key, feature.in_file->form, entry.bytes).put(out);
      }
      for (std::uint32_t s = entry.first_segment; s < entry.end_segment; ++s) {
        const Plan::PieceSpan& segment = plan_.segments[s];
        const auto bytes = static_cast<std::size_t>(segment.bytes);
        if (segment.zeros != 0) {
          std::memcpy(out, feature.zeros.data(), bytes);
        } else {
          const auto read_bytes = static_cast<std::size_t>(segment.read_bytes);
          std::uint8_t* to = out;
          if (!segment.is_whole()) {
            to = scratch_.data() + scratch;
            move_from(segment, scratch, out);
            scratch += read_bytes;
          }
          ranges_.push_back({payload + segment.read_at, to, read_bytes});
          reads_.push_back(&segment);
        }
        out += bytes;
      }
      if (entry.valid_count == 0) continue;
      out = head_of(feature.valid_key, StepForm::packed_ints, entry.valid_count).put(out);
      std::memcpy(out, plan_.valid.data() + entry.first_valid, entry.valid_count);
      out += entry.valid_count;
    }
    for (std::size_t a = step.first_absent; a < step.end_absent; ++a) {
      const std::string& entry = reader_.contents_.absent[plan_.absent[a]].entry;
      out = put_field_head(out, 1, entry.size());
      std::memcpy(out, entry.data(), entry.size());
      out += entry.size();
    }
    for (std::size_t r = step.first_rest; r < step.end_rest; ++r) {
      const RestEntry& entry = plan_.rest[r];
      out = put_field_head(out, 1, entry.bytes);
      ranges_.push_back({payload + entry.offset, out, entry.bytes});
      out += entry.bytes;
    }
  }

  // Plans the moves of the segment's values from `scratch` to `out`.
  void move_from(const Plan::PieceSpan& segment, std::size_t scratch, std::uint8_t* out) {
    if (segment.first_listed == segment.end_listed) {
      moves_.push_back({scratch + static_cast<std::size_t>(segment.skipped_bytes), out,
                        static_cast<std::size_t>(segment.bytes)});
      return;
    }
    for (std::size_t i = segment.first_listed; i < segment.end_listed; ++i) {
      const auto end = static_cast<std::size_t>(plan_.listed[i].end);
      const auto bytes = static_cast<std::size_t>(plan_.listed[i].bytes);
      moves_.push_back({scratch + end - bytes, out, bytes});
      out += bytes;
    }
  }

  void copy(const StoredFile& file, bool looks_elsewhere) {
    const std::uint8_t* const mapping = file.mapping();
    if (mapping == nullptr || looks_elsewhere) {
      if (!ranges_.empty()) file.read(ranges_);
      return;
    }
    const ReadRange* const ranges = ranges_.data();
    const std::size_t count = ranges_.size();
    const bool could = run_guarded([=] {
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(ranges[i].out, mapping + ranges[i].offset, ranges[i].bytes);
      }
    });
    if (!could) throw_mapping_fault(file, ranges_.empty() ? 0 : ranges_.front().offset);
  }

  std::optional<Wrong> first_wrong(const Plan::LaidOutStep& step) const {
    const StepFile& file = *reader_.file_;
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      const Plan::PieceSpan& segment = *reads_[i];
      const StepFeature& feature = *features_[segment.feature].in_file;
      const std::uint64_t place = first_run_of(step.row.record, step.first_step, feature.run_steps);
      const std::uint8_t* next = ranges_[i].out;
      std::uint64_t at = segment.read_at;
      const std::uint64_t stop = at + segment.read_bytes;
      for (std::uint32_t run = segment.first_run; run < segment.end_run; ++run) {
        std::uint64_t end = stop;
        if (run + 1 < segment.end_run) {
          end = Planning::piece_at(file, feature, segment.base, step.first_step,
                                   (run + 1) * feature.run_steps);
        }
        if (end < at || end > stop) end = stop;  // then the checksum is wrong
        const std::uint32_t computed = crc32c(next, static_cast<std::size_t>(end - at));
        const std::uint32_t expected = file.crc(feature, place + run);
        if (computed != expected) return Wrong{at, end - at, computed, expected, &feature.name};
        next += end - at;
        at = end;
      }
    }
    for (std::size_t r = step.first_rest, i = reads_.size(); r < step.end_rest; ++r, ++i) {
      const RestEntry& entry = plan_.rest[r];
      const std::uint32_t computed = crc32c(ranges_[i].out, entry.bytes);
      if (computed != entry.crc) {
        return Wrong{entry.offset, entry.bytes, computed, entry.crc, nullptr};
      }
    }
    return {};
  }

  void place_pieces() const noexcept {
    for (const Move& each : moves_)
      std::memcpy(each.out, scratch_.data() + each.scratch, each.bytes);
  }

  BadRow explain(const Plan::LaidOutStep& step, const Wrong& wrong, const FileRange& range) const {
    const StoredFile& file = *step.row.shard->file;
    const ErrorPlace place{file.path(), static_cast<std::int64_t>(step.row.number),
                           static_cast<std::int64_t>(range.offset)};
    bool is_shorter = false, is_changed = true;
    try {
      const FileFacts now = file.facts_now();
      is_shorter = now.bytes < file.facts().bytes;
      is_changed = !file.is_still(now);
    } catch (const Error&) {
      // The file is gone.
    }
    // After the end of a truncated file, the last page of a mapping shows zeros without a fault.
    if (is_shorter) throw_mapping_fault(file, range.offset);
    const std::string what =
        std::to_string(range.bytes) + " bytes of " +
        (wrong.feature != nullptr ? "'" + *wrong.feature + "'" : "an episode's feature") + " at " +
        file.describe_byte(range.offset) + ", in " + describe(step.row) + ", have CRC-32C " +
        hex(MaskedCrc{wrong.computed}) + ", but '" + reader_.file_->path() + "' expects " +
        hex(MaskedCrc{wrong.expected}) + ".";
    if (is_changed) {
      return {0, Error(ErrorKind::stale_index,
                       "The step file does not fit: " + what +
                           " The file was changed since the step file was made: build it again, "
                           "tfr.build_steps(...).",
                       place)};
    }
    return {0,
            Error(ErrorKind::corrupt,
                  "Corrupt step: " + what +
                      " Restore the file, or leave such steps out of batches with "
                      "on_corruption=\"skip\".",
                  place),
            true, false, range.bytes};
  }

  const StepReader& reader_;
  const std::vector<StepContents::Feature>& features_;
  const Plan& plan_;
  std::vector<ReadRange> ranges_;  // of segments, then of the rest
  std::vector<const Plan::PieceSpan*> reads_;
  std::vector<Move> moves_;
  std::vector<std::uint8_t> scratch_;
};

StepReader::StepReader(std::shared_ptr<const Reader> records, std::shared_ptr<const StepFile> file,
                       StepOptions options)
    : records_(std::move(records)),
      file_(std::move(file)),
      options_(std::move(options)),
      contents_(*file_, options_) {
  if (file_->left_out() && !records_->options().skip_damage) {
    throw Error(ErrorKind::stale_index,
                "The step file '" + file_->path() +
                    "' was made with on_corruption=\"skip\" and lacks damaged records. Open it so, "
                    "or restore the files and build it again: tfr.build_steps(...).",
                {file_->path(), {}, {}});
  }
  Fnv1a hash;
  const std::uint64_t data = records_->fingerprint();
  hash.add(&data, sizeof data);
  for (const std::string& how : {file_->axis().encode(), encode_options(options_)}) {
    hash.add(how.data(), how.size());
  }
  fingerprint_ = hash.value();
  const std::uint64_t left = std::uint64_t{contents_.left_before} + contents_.left_after;
  if (left > 0) {
    const std::vector<std::uint64_t>& all = file_->first_steps();
    counted_.reserve(all.size());
    counted_.push_back(0);
    for (std::size_t record = 0; record + 1 < all.size(); ++record) {
      const std::uint64_t steps = all[record + 1] - all[record];
      counted_.push_back(counted_.back() + (steps > left ? steps - left : 0));
    }
  }
  if (options_.chosen) {
    const std::vector<std::uint64_t>& starts = unchosen_steps();
    choice_.emplace(*options_.chosen, starts.back());
    first_chosen_.reserve(starts.size());
    for (const std::uint64_t start : starts) first_chosen_.push_back(choice_->count_below(start));
  }
  const std::uint64_t count = std::max<std::uint64_t>(file_->first_steps().back(), 1);
  unsigned __int128 bytes = records_->mean_record_bytes();
  bytes *= records_->record_count();
  mean_step_bytes_ =
      static_cast<std::uint64_t>(std::min<unsigned __int128>(bytes / count, kMaxMeanBytes));
  read_ahead_.emplace(mean_step_bytes_, records_->is_remote());
}

void StepReader::describe_parts(std::vector<PartSpec>& parts) const {
  parts.push_back({shards().size(), StepSpec{file_->path(), file_->stamp(), options_}.encode()});
}

StepReader::StepOrigin StepReader::place(std::uint64_t step) const noexcept {
  if (choice_) step = choice_->number(step);
  const std::vector<std::uint64_t>& starts = unchosen_steps();
  const auto after = std::upper_bound(starts.begin(), starts.end(), step);
  const auto record = static_cast<std::size_t>(after - starts.begin()) - 1;
  return {record, static_cast<std::uint32_t>(step - starts[record]) + contents_.left_before};
}

RecordOrigin StepReader::origin(std::uint64_t step) const {
  const StepOrigin here = place(step);
  RecordOrigin origin = records_->origin(here.record);
  origin.text = "Step " + std::to_string(here.step) + " of record " +
                std::to_string(origin.record) + " of '" + origin.path + "'";
  return origin;
}

StepReader::Plan StepReader::plan(std::span<const std::int64_t> steps, const std::vector<Row>& rows,
                                  std::uint64_t epoch) const {
  Plan plan;
  Planning planning(*this, plan, epoch);
  plan.steps.reserve(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    planning.add(static_cast<std::uint64_t>(steps[i]), rows[i]);
  }
  return plan;
}

namespace {

// Locates each step's record. Throws Error out_of_range for a step that does not exist.
std::vector<Row> rows_of(const StepReader& reader, std::span<const std::int64_t> steps) {
  std::vector<std::int64_t> records(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto step = static_cast<std::uint64_t>(steps[i]);
    if (step >= reader.record_count()) {
      throw_no_such("Step", std::to_string(steps[i]), reader.record_count());
    }
    records[i] = static_cast<std::int64_t>(reader.place(step).record);
  }
  std::vector<Row> rows(steps.size());
  reader.records().locate(records, rows.data());
  return rows;
}

}  // namespace

StepReader::Rows StepReader::read_rows(const ReadRequest& request) const {
  const std::size_t count = request.records.size();
  Rows outcome{std::make_shared<RecordBatch>(count), {}};
  RecordBatch& batch = *outcome.batch;
  // Steps of compressed shards are read in the order of their places, so that nothing is inflated
  // twice.
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  if (inflates()) {
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return request.records[a] < request.records[b];
    });
  }
  std::vector<std::int64_t> steps(count);
  for (std::size_t i = 0; i < count; ++i) steps[i] = request.records[order[i]];
  const std::vector<Row> rows = rows_of(*this, steps);
  const Plan plan = this->plan(steps, rows, request.epoch);
  std::int64_t* const offsets = batch.offsets();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = plan.steps[i].bytes();
    if (bytes > max_memory_bytes()) {
      throw Error(ErrorKind::memory, "Step " + std::to_string(steps[i]) + " has " +
                                         std::to_string(bytes) +
                                         " bytes, which is more than memory can hold.");
    }
    offsets[order[i] + 1] = static_cast<std::int64_t>(bytes);
    batch.indices()[i] = request.records[i];
  }
  std::uint64_t total = 0;
  for (std::size_t row = 0; row < count; ++row) {
    total = add_or_max(total, static_cast<std::uint64_t>(offsets[row + 1]));
    if (total > max_memory_bytes()) {
      throw Error(ErrorKind::memory, "The steps of a batch have " + std::to_string(total) +
                                         " bytes or more, which is more than memory can hold. "
                                         "Read fewer at once.");
    }
    offsets[row + 1] = static_cast<std::int64_t>(total);
  }
  batch.allocate_data();

  AnnouncedRows announced;
  if (!request.is_announced && count > 0) {
    if (!is_remote()) read_ahead_->become_local();
    if (read_ahead_->is_due(count) && read_ahead_->is_cold(rows)) {
      std::vector<StoredRange> ranges;
      for (std::size_t i = 0; i < count; ++i) plan.add_ranges(i, ranges);
      announced = announce_ranges(std::move(ranges));
    }
  }

  const std::vector<std::size_t> starts =
      cut_tasks(count, [&](std::size_t i) { return plan.steps[i].bytes() + kStepCostBytes; });
  std::mutex mutex;
  parallel_for(starts.size() - 1, request.threads, [&](std::size_t task) {
    if (request.cancelled != nullptr && *request.cancelled) throw ReadCancelled();
    Reading reading(*this, plan);
    for (std::size_t i = starts[task]; i < starts[task + 1]; ++i) {
      std::optional<BadRow> bad = reading.read(i, batch.data() + offsets[order[i]]);
      if (!bad) continue;
      bad->row = order[i];
      const std::lock_guard lock(mutex);
      outcome.bad.push_back(std::move(*bad));
      if (!options().skip_damage && !inflates()) return;
    }
  });
  std::sort(outcome.bad.begin(), outcome.bad.end(),
            [](const BadRow& a, const BadRow& b) { return a.row < b.row; });
  return outcome;
}

std::shared_ptr<const RecordBatch> StepReader::read_one(std::uint64_t step) const {
  const auto number = static_cast<std::int64_t>(step);
  Rows outcome = read_rows(ReadRequest{{&number, 1}, nullptr, 1, nullptr});
  if (!outcome.bad.empty()) throw std::move(outcome.bad.front().error);
  return std::move(outcome.batch);
}

AnnouncedRows StepReader::announce(std::span<const std::int64_t> steps, ReadAhead& read_ahead,
                                   std::uint64_t epoch) const {
  try {
    const std::vector<Row> rows = rows_of(*this, steps);
    if (!read_ahead.is_cold(rows)) return {};
    const Plan plan = this->plan(steps, rows, epoch);
    std::vector<StoredRange> ranges;
    for (std::size_t i = 0; i < steps.size(); ++i) plan.add_ranges(i, ranges);
    return announce_ranges(std::move(ranges));
  } catch (const std::exception&) {
    return {};
  }
}

std::uint64_t StepReader::range_end(std::uint64_t begin, std::uint64_t target_bytes,
                                    std::uint64_t max_steps) const {
  const std::uint64_t count = record_count();
  if (begin >= count) return count;
  const std::uint64_t wanted = std::clamp<std::uint64_t>(target_bytes / (mean_step_bytes_ + 1), 1,
                                                         std::max<std::uint64_t>(max_steps, 1));
  return begin + std::min(wanted, count - begin);
}

std::vector<SkippedBytes> StepReader::skipped() const {
  std::vector<SkippedBytes> all = records_->skipped();
  append_skipped(all);
  return all;
}

}  // namespace tfrfast
