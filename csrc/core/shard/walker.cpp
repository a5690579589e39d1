#include "core/shard/walker.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/pool.h"

namespace tfrfast {
namespace {

class MappedWalker final : public ShardWalker {
 public:
  using ShardWalker::ShardWalker;
  ShardWindow window(std::uint64_t, std::size_t) override {
    return {file().mapping(), 0, file().bytes(), file().bytes()};
  }
};

class PreadWalker final : public ShardWalker {
 public:
  PreadWalker(std::shared_ptr<const StoredFile> file, LookAhead ahead)
      : ShardWalker(std::move(file)), ahead_(std::move(ahead)) {}
  ShardWindow window(std::uint64_t offset, std::size_t wanted) override {
    offset = std::min(offset, file().bytes());
    const std::uint64_t end = offset + std::min<std::uint64_t>(wanted, file().bytes() - offset);
    if (offset < window_.begin || end > window_.end || window_.bytes == nullptr)
      fill(offset, wanted);
    return window_;
  }

 private:
  void fill(std::uint64_t offset, std::size_t wanted_bytes) {
    const StorageTraits& traits = file().traits();
    const bool everything = expected() == Access::everything;
    const std::size_t size =
        std::max(wanted_bytes, everything ? traits.request_bytes : traits.gap_bytes);
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, file().bytes() - offset));
    if (everything) ahead_.come_to(file(), offset);
    // Bytes of the last window are not read again.
    const bool goes_on = offset >= window_.begin && offset < window_.end;
    const auto kept = static_cast<std::size_t>(goes_on ? window_.end - offset : 0);
    PooledBuffer larger;
    if (buffer_.capacity() < count) larger = PooledBuffer(count);
    std::uint8_t* const into = larger.data() == nullptr ? buffer_.data() : larger.data();
    if (kept > 0) std::memmove(into, buffer_.data() + (offset - window_.begin), kept);
    window_ = {};  // after a failed read, the window is empty
    if (larger.data() != nullptr) buffer_ = std::move(larger);
    if (kept < count) file().read(offset + kept, buffer_.data() + kept, count - kept);
    window_ = {buffer_.data(), offset, offset + std::max(count, kept), file().bytes()};
  }

  LookAhead ahead_;
  PooledBuffer buffer_;
  ShardWindow window_;
};

}  // namespace

void LookAhead::come_to(const StoredFile& file, std::uint64_t offset) {
  const StorageTraits& traits = file.traits();
  if (!traits.is_remote) return;
  ahead_.come_to(offset);
  std::uint64_t begin = std::max(offset, ahead_.end());
  const std::uint64_t end = std::min(file.bytes(), offset + max_bytes_of(file));
  std::vector<FileRange> ranges;
  for (; begin < end; begin += ranges.back().bytes) {
    ranges.push_back({begin, std::min<std::uint64_t>(traits.request_bytes, end - begin)});
  }
  if (!ranges.empty()) add(end, file.announce(ranges));
}

void LookAhead::come_far(const StoredFile& file, std::uint64_t offset) {
  if (ahead_.end() <= offset + max_bytes_of(file) / 2) come_to(file, offset);
}

std::uint64_t LookAhead::max_bytes_of(const StoredFile& file) const noexcept {
  const StorageTraits& traits = file.traits();
  return std::min({max_bytes_, traits.max_announced_bytes,
                   std::uint64_t{traits.requests_at_once} * traits.request_bytes});
}

void LookAhead::add(std::uint64_t end, std::unique_ptr<Announcement> announcement) {
  Announcements announcements;
  if (announcement != nullptr) announcements.push_back(std::move(announcement));
  ahead_.add(end, std::move(announcements));
}

std::unique_ptr<ShardWalker> walk(std::shared_ptr<const StoredFile> file, LookAhead ahead) {
  if (file->mapping() != nullptr || file->bytes() == 0) {
    return std::make_unique<MappedWalker>(std::move(file));
  }
  return std::make_unique<PreadWalker>(std::move(file), std::move(ahead));
}

}  // namespace tfrfast
