#include "core/write/sharded_writer.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/index/folder_writing.h"
#include "core/storage/local/file_descriptor.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/write_checks.h"

namespace tfrfast {
namespace {

constexpr std::size_t kAllBuffersBytes = std::size_t{64} << 20;
constexpr std::size_t kAllReservedBytes = std::size_t{256} << 20;
constexpr std::size_t kSmallestBufferBytes = 64 << 10;
constexpr unsigned kFlushingThreads = 4;
constexpr int kNumberDigits = 5;

// The most shards that keep their descriptors.
std::size_t max_held_shards() {
  return std::clamp<std::size_t>(max_descriptors() / 8, 8, 512);
}

std::string padded(std::size_t number) {
  const std::string digits = std::to_string(number);
  const std::size_t missing = kNumberDigits - std::min<std::size_t>(kNumberDigits, digits.size());
  return std::string(missing, '0') + digits;
}

std::size_t take_number(std::string_view& text) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  text.remove_prefix(digits);
  return digits;
}

bool take(std::string_view& text, std::string_view wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(wanted.size());
  return true;
}

// Lists the files in `folder` named <prefix>-00000-of-00064<suffix>, with any numbers.
std::vector<std::string> list_named(const std::string& folder, std::string_view prefix,
                                    std::string_view suffix) {
  std::vector<std::string> found;
  for (std::string& each : list_folder(folder)) {
    std::string_view name = each;
    if (take(name, prefix) && take(name, "-") && take_number(name) >= kNumberDigits &&
        take(name, "-of-") && take_number(name) >= kNumberDigits && name == suffix) {
      found.push_back(std::move(each));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void refuse_folders(const std::string& folder, const std::string& prefix, std::string_view suffix) {
  for (const std::string& name : list_named(folder, prefix, suffix)) {
    const std::string path = folder + "/" + name;
    if (look_at_name(path).kind == NameKind::folder) {
      throw_system_error(EISDIR, "Creating", path, "Move that folder, or choose another name.");
    }
  }
}

}  // namespace

std::string shard_name(const std::string& prefix, std::size_t number, std::size_t count) {
  return prefix + "-" + padded(number) + "-of-" + padded(count);
}

std::vector<std::string> list_shards(const std::string& prefix) {
  const std::string name = name_of(prefix);
  const std::string begin = prefix.substr(0, prefix.size() - name.size());
  std::vector<std::string> found = list_named(folder_of(prefix), name, "");
  for (std::string& each : found) each.insert(0, begin);
  return found;
}

void check_shard_places(const std::string& prefix, std::size_t count, const WriteOptions& options) {
  for (std::size_t number = 0; number < std::max<std::size_t>(count, 1); ++number) {
    const std::string path = shard_name(prefix, number, count);
    if (number == 0) {
      check_place(path, "Creating", "");
    } else {
      check_name(path, "Creating", "");
    }
  }
  const std::string index_folder = index_folder_for(prefix, options);
  if (!index_folder.empty()) check_folder_for_indexes(index_folder, false);
  if (count > 0) return;
  // No name that the shards may get can be a folder's.
  const std::string name = name_of(prefix);
  refuse_folders(folder_of(prefix), name, "");
}

ShardedWriter::ShardedWriter(std::string prefix, const ShardedOptions& options)
    : prefix_(std::move(prefix)),
      new_folders_(folder_of(prefix_)),
      new_index_folders_(index_folder_for(prefix_, options.shard)),
      options_(options) {
  if (name_of(prefix_).empty()) {
    throw Error(ErrorKind::invalid,
                "'" + prefix_ +
                    "' names a folder, but shards need a beginning of their names, too: '" +
                    prefix_ + "train' gives '" + shard_name(prefix_ + "train", 0, 64) + "'.",
                {prefix_, {}, {}});
  }
  make_folders(folder_of(prefix_));
  if (options_.shard.existing == Existing::keep) {
    const std::vector<std::string> taken = list_shards(prefix_);
    if (!taken.empty()) {
      throw_system_error(EEXIST, "Writing shards named like", taken.front(),
                         "Choose another name, or pass overwrite=True to replace all " +
                             std::to_string(taken.size()) + " of them.");
    }
  }
  if (options_.shard_count == 0) check_shard_places(prefix_, 0, options_.shard);
  const std::size_t count = std::max<std::size_t>(options_.shard_count, 1);
  options_.shard.buffer_bytes =
      std::clamp(kAllBuffersBytes / count, kSmallestBufferBytes, kWriteBufferBytes);
  options_.shard.reserved_bytes = kAllReservedBytes / count;
  options_.shard.hold_descriptor = count <= max_held_shards();
  for (std::size_t shard = 0; shard < count; ++shard) add_shard();
}

void ShardedWriter::add_shard() {
  const std::size_t number = shards_.size();
  const std::string path = options_.shard_count > 0
                               ? shard_name(prefix_, number, options_.shard_count)
                               : prefix_ + "-" + padded(number) + "-of-unknown";
  shards_.push_back(std::make_unique<ShardWriter>(path, options_.shard));
  options_.shard.index_folder_is_tried = true;
}

ShardWriter& ShardedWriter::shard_for(std::size_t payload_bytes) {
  if (options_.shard_count > 0) {
    ShardWriter& shard = *shards_[next_];
    next_ = next_ + 1 == shards_.size() ? 0 : next_ + 1;
    return shard;
  }
  const ShardWriter& last = *shards_.back();
  const std::uint64_t left =
      options_.max_shard_bytes - std::min(options_.max_shard_bytes, last.bytes());
  if (last.record_count() > 0 && (left < kFrameOverhead || left - kFrameOverhead < payload_bytes)) {
    if (shards_.size() >= max_held_shards()) {
      shards_.back()->park();
    } else {
      shards_.back()->drop_buffer();
    }
    add_shard();
  }
  return *shards_.back();
}

void ShardedWriter::write(std::span<const std::uint8_t> payload) {
  shard_for(payload.size()).write(payload);
  ++record_count_;
}

void ShardedWriter::write(const RecordBatch& batch, std::size_t first, std::size_t end) {
  for (std::size_t row = first; row < end; ++row) {
    if (batch.is_real(row)) write(batch[row]);
  }
}

bool ShardedWriter::has_space(std::size_t payload_bytes) const noexcept {
  const ShardWriter& shard = options_.shard_count > 0 ? *shards_[next_] : *shards_.back();
  if (!shard.has_space(payload_bytes)) return false;
  return options_.shard_count > 0 || shard.bytes() < options_.max_shard_bytes / 2 ||
         shard.bytes() + kFrameOverhead + payload_bytes <= options_.max_shard_bytes;
}

void ShardedWriter::close() {
  if (options_.shard_count == 0) {
    for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
      shards_[shard]->rename(shard_name(prefix_, shard, shards_.size()));
    }
  }
  finish_all();
  publish_all();
  if (options_.shard.existing == Existing::replace) remove_others();
  if (!index_folder().empty()) try_to_compact_index(index_folder());
  if (!options_.shard.durable) return;
  flush_folder(folder_of(prefix_));
  if (!index_folder().empty()) flush_folder(index_folder());
}

void ShardedWriter::finish_all() {
  const bool park = shards_.size() > max_held_shards();
  parallel_for(shards_.size(), kFlushingThreads, [&](std::size_t shard) {
    shards_[shard]->finish();
    if (park) shards_[shard]->park();
  });
}

void ShardedWriter::publish_all() {
  std::size_t published = 0;
  try {
    for (; published < shards_.size(); ++published) shards_[published]->publish();
  } catch (const Error&) {
    // A file that replaced another file cannot be taken back. A new file can.
    for (std::size_t shard = 0; options_.shard.existing == Existing::keep && shard < published;
         ++shard) {
      remove_file(shards_[shard]->path());
    }
    throw;
  }
}

void ShardedWriter::remove_others() {
  const std::vector<std::string> mine = paths();
  const std::set<std::string> kept(mine.begin(), mine.end());
  for (const std::string& path : list_shards(prefix_)) {
    if (!kept.contains(path)) remove_file(path);
  }
}

std::vector<std::string> ShardedWriter::paths() const {
  std::vector<std::string> all;
  for (const auto& shard : shards_) all.push_back(shard->path());
  return all;
}

std::uint64_t ShardedWriter::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& shard : shards_) sum += shard->bytes();
  return sum;
}

}  // namespace tfrfast
