#include "core/shard/walker.h"

#include <algorithm>
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
  using ShardWalker::ShardWalker;
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
    const bool everything = expected() == Wanted::everything;
    const std::size_t size =
        std::max(wanted_bytes, everything ? traits.request_bytes : traits.gap_bytes);
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, file().bytes() - offset));
    if (everything) announce_ahead(file(), offset, announced_end_);
    if (buffer_.capacity() < size) buffer_ = PooledBuffer(size);
    file().read(offset, buffer_.data(), count);
    window_ = {buffer_.data(), offset, offset + count, file().bytes()};
  }

  std::uint64_t announced_end_ = 0;
  PooledBuffer buffer_;
  ShardWindow window_;
};

}  // namespace

void announce_ahead(const StoredFile& file, std::uint64_t offset, std::uint64_t& announced_end) {
  const StorageTraits& traits = file.traits();
  if (!traits.is_far) return;
  std::uint64_t begin = std::max(offset, announced_end);
  const std::uint64_t end = std::min(
      file.bytes(), offset + std::uint64_t{traits.requests_at_once} * traits.request_bytes);
  std::vector<FileRange> ranges;
  for (; begin < end; begin += ranges.back().bytes) {
    ranges.push_back({begin, std::min<std::uint64_t>(traits.request_bytes, end - begin)});
  }
  if (ranges.empty()) return;
  file.announce(ranges);
  announced_end = end;
}

std::unique_ptr<ShardWalker> walk(std::shared_ptr<const StoredFile> file) {
  if (file->mapping() != nullptr || file->bytes() == 0) {
    return std::make_unique<MappedWalker>(std::move(file));
  }
  return std::make_unique<PreadWalker>(std::move(file));
}

}  // namespace tfrfast
