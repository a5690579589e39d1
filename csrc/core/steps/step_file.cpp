#include "core/steps/step_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/crc32c/crc32c.h"
#include "core/storage/fault_guard.h"
#include "core/storage/local/sidecar.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMaxHeadBytes = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStepsOfRecord = std::uint64_t{1} << 31;

}  // namespace

std::shared_ptr<const StepFile> StepFile::open(const std::string& path, const ShardSet& data,
                                               std::uint64_t stamp) {
  // Not std::make_shared: the constructor is private.
  std::shared_ptr<StepFile> opened(new StepFile(open_sidecar(path)));
  data.refuse_unless_believed(
      *opened->file_, "The step file",
      "Remove it, or keep your own elsewhere: tfr.build_steps(..., folder=...).");
  opened->read_header(data, stamp);
  return opened;
}

void StepFile::refuse(const std::string& why) const {
  throw Error(ErrorKind::corrupt,
              "'" + path() + "' is not an intact step file: " + why +
                  ". Build it again: "
                  "tfr.build_steps(...).",
              {path(), {}, {}});
}

void StepFile::read_header(const ShardSet& data, std::uint64_t stamp) {
  const std::uint64_t size = file_->bytes();
  if (size < sizeof header_) refuse("it is shorter than its header");
  file_->read(0, reinterpret_cast<std::uint8_t*>(&header_), sizeof header_);
  if (std::memcmp(header_.magic, kStepsMagic, sizeof kStepsMagic) != 0) {
    refuse("it does not begin like a step file");
  }
  if (header_.version != kStepFileVersion) {
    refuse("it has version " + std::to_string(header_.version) + ", and this tfrfast reads " +
           std::to_string(kStepFileVersion));
  }
  const std::uint64_t head_bytes = header_.body_at - sizeof header_;
  if (header_.body_at < sizeof header_ || header_.body_at > size || head_bytes > kMaxHeadBytes ||
      header_.body_at % kStepAlignment != 0 || header_.body_bytes != size - header_.body_at) {
    refuse("its header does not fit its size");
  }
  std::vector<std::uint8_t> head(bytes_for<std::uint8_t>(static_cast<std::size_t>(head_bytes)));
  file_->read(sizeof header_, head.data(), head.size());
  const auto* const packed = reinterpret_cast<const std::uint8_t*>(&header_);
  std::uint32_t crc = crc32c(packed, offsetof(StepFileHeader, header_crc));
  if (crc32c(head.data(), head.size(), crc) != header_.header_crc) {
    refuse("the checksum of its header does not match");
  }
  if (header_.fingerprint != data.fingerprint() || header_.record_count != data.record_count() ||
      header_.stamp != stamp) {
    throw Error(
        ErrorKind::stale_index,
        "The step file '" + path() +
            "' belongs to other data: since it was made, shards were changed, added or removed. "
            "Build it again: tfr.build_steps(...).",
        {path(), {}, {}});
  }
  const std::uint64_t blocks = (header_.body_bytes + kStepBlockBytes - 1) / kStepBlockBytes;
  if (header_.description_bytes > head_bytes ||
      (head_bytes - header_.description_bytes) / sizeof(std::uint32_t) < blocks) {
    refuse("its header is too short");
  }
  block_crcs_.resize(static_cast<std::size_t>(blocks));
  if (blocks > 0) {
    std::memcpy(block_crcs_.data(), head.data() + header_.description_bytes,
                block_crcs_.size() * sizeof(std::uint32_t));
  }
  checked_ = std::vector<std::atomic<bool>>(block_crcs_.size());
  if (const std::uint8_t* const mapping = file_->mapping(); mapping != nullptr) {
    body_ = mapping + header_.body_at;
  } else {
    const auto words = static_cast<std::size_t>((header_.body_bytes + 7) / 8);
    owned_.resize(bytes_for<std::uint64_t>(words) / sizeof(std::uint64_t));
    auto* const out = reinterpret_cast<std::uint8_t*>(owned_.data());
    file_->read(header_.body_at, out, static_cast<std::size_t>(header_.body_bytes));
    body_ = out;
  }
  head.resize(static_cast<std::size_t>(header_.description_bytes));
  read_description(head);
  read_first_steps();
}

namespace {

// Reads the description. Past the end, returns zeros and marks itself bad.
class Description {
 public:
  explicit Description(const std::vector<std::uint8_t>& bytes) : rest_(bytes) {}
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    if (rest_.size() < bytes) {
      bad_ = true;
      return 0;
    }
    std::memcpy(&value, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
    return value;
  }
  std::uint32_t word() { return static_cast<std::uint32_t>(number(4)); }
  std::string text() {
    const std::uint32_t bytes = word();
    if (rest_.size() < bytes) {
      bad_ = true;
      return {};
    }
    std::string text(reinterpret_cast<const char*>(rest_.data()), bytes);
    rest_ = rest_.subspan(bytes);
    return text;
  }
  bool is_bad() const { return bad_; }
  bool is_done() const { return rest_.empty() && !bad_; }

 private:
  std::span<const std::uint8_t> rest_;
  bool bad_ = false;
};

}  // namespace

void StepFile::check_table(std::uint64_t at, std::uint64_t count, std::uint64_t width) const {
  if (at % 8 != 0 || at > header_.body_bytes || count > (header_.body_bytes - at) / width) {
    refuse("a table does not lie in it");
  }
}

void StepFile::read_description(const std::vector<std::uint8_t>& bytes) {
  Description from(bytes);
  const std::string axis = from.text();
  rows_at_ = from.number(8);
  rest_at_ = from.number(8);
  const std::uint32_t count = from.word();
  for (std::uint32_t i = 0; i < count && !from.is_bad(); ++i) {
    StepFeature each;
    each.name = from.text();
    const std::uint32_t form = from.word();
    each.form = static_cast<StepForm>(form);
    each.values = from.word();
    each.run_steps = from.word();
    each.width = from.word();
    each.crcs_at = from.number(8);
    each.crc_count = from.number(8);
    each.blocks_at = from.number(8);
    each.residuals_at = from.number(8);
    each.residuals_bytes = from.number(8);
    if (from.is_bad() || form > static_cast<std::uint32_t>(kLastForm) ||
        !std::has_single_bit(each.run_steps)) {
      refuse("its description makes no sense");
    }
    features_.push_back(std::move(each));
  }
  if (!from.is_done() || features_.empty()) refuse("its description makes no sense");
  try {
    axis_ = StepAxis::decode(axis);
  } catch (const Error& error) {
    refuse(error.message());
  }
  const std::uint64_t width = sizeof(std::uint32_t) * (1 + features_.size());
  if (header_.record_count == ~std::uint64_t{0} || header_.step_count == ~std::uint64_t{0}) {
    refuse("its counts make no sense");
  }
  check_table(0, header_.record_count + 1, sizeof(std::uint64_t));
  check_table(rows_at_, header_.record_count + 1, width);
  check_table(rest_at_, header_.rest_count, sizeof(RestEntry));
  for (const StepFeature& each : features_) {
    check_table(each.crcs_at, each.crc_count, sizeof(std::uint32_t));
    if (each.width != 0) continue;
    check_table(each.blocks_at, PackedOffsets::block_count_of(header_.step_count + 1),
                sizeof(OffsetBlock));
    check_table(each.residuals_at, each.residuals_bytes, 1);
    if (each.residuals_bytes < PackedOffsets::kResidualPadding) refuse("a table is too short");
  }
}

void StepFile::read_first_steps() {
  first_steps_.resize(bytes_for<std::uint64_t>(header_.record_count + 1) / sizeof(std::uint64_t));
  const std::size_t bytes = first_steps_.size() * sizeof(std::uint64_t);
  touch([&] {
    if (!is_intact(0, bytes)) return false;
    std::memcpy(first_steps_.data(), body_, bytes);
    return true;
  });
  std::uint64_t before = 0;
  for (const std::uint64_t each : first_steps_) {
    if (each < before || each - before >= kMaxStepsOfRecord) refuse("its steps do not ascend");
    before = each;
  }
  if (first_steps_.front() != 0 || before != header_.step_count) {
    refuse("its steps are not as many as it says");
  }
}

bool StepFile::is_intact(std::uint64_t begin, std::uint64_t bytes) const noexcept {
  if (bytes == 0) return true;
  const std::uint64_t last = (begin + bytes - 1) / kStepBlockBytes;
  for (std::uint64_t block = begin / kStepBlockBytes; block <= last; ++block) {
    std::atomic<bool>& checked = checked_[static_cast<std::size_t>(block)];
    if (checked.load(std::memory_order_relaxed)) continue;
    const std::uint64_t at = block * kStepBlockBytes;
    const std::uint64_t count = std::min(kStepBlockBytes, header_.body_bytes - at);
    const std::uint32_t crc = crc32c(body_ + at, static_cast<std::size_t>(count));
    if (crc != block_crcs_[static_cast<std::size_t>(block)]) return false;
    checked.store(true, std::memory_order_relaxed);
  }
  return true;
}

template <class Leaf>
void StepFile::touch(const Leaf& leaf) const {
  bool is_good = false;
  if (!run_guarded([&] { is_good = leaf(); })) throw_mapping_fault(*file_, header_.body_at);
  if (!is_good) refuse("a checksum does not match");
}

StepFile::Entries StepFile::row(std::uint64_t record, std::uint32_t* bases) const {
  const std::uint64_t count = features_.size();
  const std::uint64_t width = sizeof(std::uint32_t) * (1 + count);
  const std::uint64_t at = rows_at_ + record * width;
  Entries entries{};
  std::uint32_t next = 0;
  touch([&] {
    if (!is_intact(at, width + sizeof next)) return false;
    std::memcpy(&entries.first, body_ + at, sizeof entries.first);
    std::memcpy(bases, body_ + at + sizeof entries.first, count * sizeof(std::uint32_t));
    std::memcpy(&next, body_ + at + width, sizeof next);
    return true;
  });
  if (entries.first > next || next > header_.rest_count) refuse("its entries do not ascend");
  entries.count = next - entries.first;
  return entries;
}

void StepFile::rest(const Entries& entries, RestEntry* out) const {
  if (entries.count == 0) return;
  const std::uint64_t at = rest_at_ + std::uint64_t{entries.first} * sizeof(RestEntry);
  const std::uint64_t bytes = std::uint64_t{entries.count} * sizeof(RestEntry);
  touch([&] {
    if (!is_intact(at, bytes)) return false;
    std::memcpy(out, body_ + at, static_cast<std::size_t>(bytes));
    return true;
  });
}

std::uint64_t StepFile::bytes_before(const StepFeature& feature, std::uint64_t step) const {
  const auto* const blocks = reinterpret_cast<const OffsetBlock*>(body_ + feature.blocks_at);
  const PackedOffsets offsets(
      blocks, {body_ + feature.residuals_at, static_cast<std::size_t>(feature.residuals_bytes)},
      header_.step_count + 1);
  std::uint64_t bytes = 0;
  touch([&] {
    const std::uint64_t block =
        feature.blocks_at + step / PackedOffsets::kBlockOffsets * sizeof(OffsetBlock);
    if (!is_intact(block, sizeof(OffsetBlock))) return false;
    const auto* const residual = static_cast<const std::uint8_t*>(offsets.place_of_residual(step));
    if (!is_intact(static_cast<std::uint64_t>(residual - body_), sizeof(std::uint64_t))) {
      return false;
    }
    bytes = offsets[step];
    return true;
  });
  return bytes;
}

std::uint32_t StepFile::crc(const StepFeature& feature, std::uint64_t place) const {
  if (place >= feature.crc_count) refuse("it lacks a checksum of '" + feature.name + "'");
  const std::uint64_t at = feature.crcs_at + place * sizeof(std::uint32_t);
  std::uint32_t crc = 0;
  touch([&] {
    if (!is_intact(at, sizeof crc)) return false;
    std::memcpy(&crc, body_ + at, sizeof crc);
    return true;
  });
  return crc;
}

StepPart StepFile::part() const {
  StepPart part;
  part.left_out = left_out();
  for (const StepFeature& each : features_) {
    FeaturePart made;
    made.name = each.name;
    made.form = each.form;
    made.values = each.values;
    made.run_steps = each.run_steps;
    made.width = each.width;
    made.has_sizes = each.width == 0;
    part.features.push_back(std::move(made));
  }
  std::vector<std::uint32_t> bases(features_.size());
  for (std::size_t record = 0; record + 1 < first_steps_.size(); ++record) {
    const std::uint64_t first = first_steps_[record], end = first_steps_[record + 1];
    const Entries entries = row(record, bases.data());
    part.steps.push_back(static_cast<std::uint32_t>(end - first));
    part.rest_counts.push_back(entries.count);
    part.rest.resize(part.rest.size() + entries.count);
    rest(entries, part.rest.data() + part.rest.size() - entries.count);
    for (std::size_t i = 0; i < features_.size(); ++i) {
      const StepFeature& feature = features_[i];
      FeaturePart& made = part.features[i];
      made.bases.push_back(bases[i]);
      if (bases[i] == kNoPieces) continue;
      if (made.has_sizes) {
        std::uint64_t before = bytes_before(feature, first);
        for (std::uint64_t step = first; step < end; ++step) {
          const std::uint64_t after = bytes_before(feature, step + 1);
          made.sizes.push_back(static_cast<std::uint32_t>(after - before));
          before = after;
        }
      }
      const std::uint64_t runs = (end - first + made.run_steps - 1) / made.run_steps;
      const std::uint64_t first_run = first_run_of(record, first, made.run_steps);
      for (std::uint64_t run = 0; run < runs; ++run) {
        made.crcs.push_back(crc(feature, first_run + run));
      }
    }
  }
  return part;
}

}  // namespace tfrfast
