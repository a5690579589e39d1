#include "core/shard/walker.h"

#include <algorithm>

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
  void fill(std::uint64_t offset, std::size_t wanted) {
    const std::size_t size = std::max(wanted, read_ahead_bytes());
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, file().bytes() - offset));
    if (buffer_.capacity() < size) buffer_ = PooledBuffer(size);
    file().read(offset, buffer_.data(), count);
    window_ = {buffer_.data(), offset, offset + count, file().bytes()};
  }

  PooledBuffer buffer_;
  ShardWindow window_;
};

}  // namespace

std::unique_ptr<ShardWalker> walk(std::shared_ptr<const StoredFile> file) {
  if (file->mapping() != nullptr || file->bytes() == 0) {
    return std::make_unique<MappedWalker>(std::move(file));
  }
  return std::make_unique<PreadWalker>(std::move(file));
}

}  // namespace tfrfast
