#include "core/write/shard_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/warnings.h"
#include "core/index/folder_writing.h"
#include "core/index/index_places.h"
#include "core/index/index_state.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/write_checks.h"

namespace tfrfast {
namespace {

// From this size on, copying a payload into the buffer costs more than a system call. Smaller
// payloads are copied, because the page cache takes a few large pieces twice as fast as many of 100
// KB.
constexpr std::size_t kLargePayloadBytes = 512 << 10;
// A piece of a large payload is written while its copy is in the cache.
constexpr std::size_t kCopiedPieceBytes = 256 << 10;
constexpr std::size_t kMinBufferBytes = 4 << 10;

}  // namespace

std::string index_folder_for(const std::string& shard_path, const WriteOptions& options) {
  if (!options.index) return "";
  return options.index_folder.empty() ? sibling_index_folder(shard_path) : options.index_folder;
}

void check_folder_for_indexes(const std::string& folder, bool is_tried) {
  check_index_folder(folder, "Pass index=False, or index_folder=.", is_tried);
}

ShardWriter::ShardWriter(const std::string& path, const WriteOptions& options)
    : options_(options),
      index_folder_(index_folder_for(path, options)),
      new_folders_(options.index_folder_is_tried ? "" : index_folder_),
      file_(checked_target(path, options.existing)) {
  options_.buffer_bytes = std::max(options_.buffer_bytes, kMinBufferBytes);
  if (!index_folder_.empty()) {
    check_folder_for_indexes(index_folder_, options_.index_folder_is_tried);
    file_.keep_temporary_in(index_folder_);
  }
  if (options_.compression != Compression::none) {
    members_.emplace(file_, options_.compression, options_.level);
  }
  if (options_.existing == Existing::replace) file_.keep_permissions();
  file_.reserve_ahead(options_.reserved_bytes);
  if (options_.durable) {
    file_.flush_early();
    check_flushable(folder_of(file_.path()));
    if (!index_folder_.empty()) check_flushable(index_folder_);
  }
  if (!options_.hold_descriptor) file_.park();
}

void ShardWriter::write(std::span<const std::uint8_t> payload) {
  refuse_after_failure();
  if (payload.size() >= std::min(kLargePayloadBytes, options_.buffer_bytes / 2)) {
    write_through(payload);
    return;
  }
  if (!has_space(payload.size())) make_space();
  if (!index_folder_.empty()) offsets_.push_back(bytes());
  buffer_.put_frame(payload);
  if (!index_folder_.empty() && samples_.wants(record_count_)) {
    const std::uint8_t* const end = buffer_.bytes().data() + buffer_.bytes().size();
    samples_.add(end - payload.size() - kFrameOverhead, end - kFooterBytes);
  }
  ++record_count_;
}

void ShardWriter::write(const RecordBatch& batch, std::size_t first, std::size_t end) {
  for (std::size_t row = first; row < end; ++row) {
    if (batch.is_real(row)) write(batch[row]);
  }
}

// Another thread may change the payload, so the checksum is of the copies that are written.
void ShardWriter::write_through(std::span<const std::uint8_t> payload) {
  const PooledBuffer copy(std::min(payload.size(), kCopiedPieceBytes));
  if (!has_space(0)) make_space();
  if (!index_folder_.empty()) offsets_.push_back(bytes());
  buffer_.put_header(payload.size());
  std::uint8_t header[kHeaderBytes], footer[kFooterBytes];
  std::memcpy(header, buffer_.bytes().last(kHeaderBytes).data(), kHeaderBytes);
  std::uint32_t crc = 0;
  const auto copy_next = [&](std::size_t bytes) {
    crc = copy_crc32c(copy.data(), payload.data(), bytes, crc);
    payload = payload.subspan(bytes);
    return std::span<const std::uint8_t>(copy.data(), bytes);
  };
  while (payload.size() > kCopiedPieceBytes) write_out(copy_next(kCopiedPieceBytes));
  const std::span<const std::uint8_t> last = copy_next(payload.size());
  encode_footer(mask_crc(crc), footer);
  write_out(last, footer);
  if (!index_folder_.empty() && samples_.wants(record_count_)) samples_.add(header, footer);
  ++record_count_;
}

void ShardWriter::make_space() {
  if (!buffer_.bytes().empty()) write_out();
  if (!buffer_.allocated()) buffer_.allocate(options_.buffer_bytes);
}

void ShardWriter::write_out(std::span<const std::uint8_t> payload,
                            std::span<const std::uint8_t> footer) {
  const std::span<std::uint8_t> buffered = buffer_.bytes();
  failed_ = true;
  if (members_) {
    for (const ByteView piece : {ByteView(buffered), payload, footer}) members_->append(piece);
  } else {
    file_.append({buffered, payload, footer});
  }
  if (!options_.hold_descriptor) file_.park();
  failed_ = false;
  written_bytes_ += buffered.size() + payload.size() + footer.size();
  buffer_.clear();
}

void ShardWriter::refuse_after_failure() const {
  if (!failed_) return;
  throw Error(ErrorKind::closed,
              "Writing '" + path() +
                  "' failed before, so this shard is incomplete and will not be published. Begin "
                  "it again with a new writer.",
              {path(), {}, {}});
}

void ShardWriter::drop_buffer() {
  refuse_after_failure();
  if (!buffer_.bytes().empty()) write_out();
  buffer_.release();
  if (!members_) return;
  failed_ = true;
  members_->flush();
  failed_ = false;
}

void ShardWriter::park() {
  drop_buffer();
  file_.park();
}

void ShardWriter::rename(const std::string& path) {
  file_.rename(path);
}

void ShardWriter::finish() {
  drop_buffer();
  failed_ = true;
  const auto seek_points = members_ ? members_->finish() : nullptr;
  ShardFacts facts{members_ ? members_->file_bytes() : bytes(), 0, bytes(), options_.compression};
  if (!members_) facts.samples_crc = samples_.crc();
  // Waiting for the clock's next tick would also prove the state, but dominates 100,000 small
  // shards.
  if (!index_folder_.empty()) facts.by_writer = file_.set_back(&facts.mtime_ns);
  if (options_.durable) file_.flush();
  if (!index_folder_.empty()) {
    offsets_.push_back(bytes());
    index_ = std::make_shared<const ShardIndex>(facts, std::exchange(offsets_, {}),
                                                std::vector<Damage>(), seek_points);
  }
  failed_ = false;
}

void ShardWriter::warn_about_index(const Error& error) const {
  warn_once("unwritten " + index_folder_,
            "'" + path() + "' was written, but its index was not: " + error.message() +
                " Readers scan the shard until `tfrfast index` or tfr.build_index makes its "
                "index. Shards with indexes in the same folder may have the same trouble.");
}

void ShardWriter::publish() {
  refuse_after_failure();
  failed_ = true;
  std::optional<IndexAddition> addition;
  if (index_ != nullptr) {
    addition.emplace(place_for(options_.index_folder, path()), *index_);
  }
  file_.commit(false, options_.existing);
  if (addition) {
    // The shard has its final version only now, and the index must name that version.
    try {
      addition->commit(facts_when_published(index_->facts(), path()), options_.durable);
    } catch (const Error& error) {
      // The shard is published. Without an index, the first reader walks the shard.
      warn_about_index(error);
    }
    index_.reset();
  }
  failed_ = false;
}

}  // namespace tfrfast
