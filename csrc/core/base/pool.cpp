#include "core/base/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <new>
#include <vector>

#include "core/base/fork.h"
#include "core/base/memory.h"
#include "core/base/platform.h"

namespace tfrfast {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMinBytes = 4096;
constexpr unsigned kMinBits = 12;          // of kMinBytes
constexpr unsigned kStepsPerDoubling = 4;  // at most a quarter of a buffer is slack
constexpr unsigned kClasses = (64 - kMinBits) * kStepsPerDoubling;

struct SizeClass {
  unsigned number;
  std::size_t bytes;
};

SizeClass size_class_of(std::size_t bytes) {
  if (bytes <= kMinBytes) return {0, kMinBytes};
  if (bytes > (std::size_t{1} << 60)) throw OutOfMemory(bytes);
  const unsigned doubling = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;
  const std::size_t step = (std::size_t{1} << doubling) / kStepsPerDoubling;
  const std::size_t steps = (bytes - (std::size_t{1} << doubling) + step - 1) / step;
  return {(doubling - kMinBits) * kStepsPerDoubling + static_cast<unsigned>(steps),
          (std::size_t{1} << doubling) + steps * step};
}

std::uint8_t* fresh(std::size_t bytes) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kPoolAlignment;
  auto* data =
      static_cast<std::uint8_t*>(::operator new(bytes, std::align_val_t(alignment), std::nothrow));
  if (data == nullptr) throw OutOfMemory(bytes);
#if defined(TFRFAST_LINUX)
  if (bytes >= kHugePage) ::madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return data;
}

void discard(std::uint8_t* data, std::size_t bytes) noexcept {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kPoolAlignment;
  ::operator delete(data, std::align_val_t(alignment));
}

class Pool {
 public:
  // Never destroyed: buffers may come back while statics are being destroyed.
  static Pool& instance() {
    static Pool* pool = [] {
      auto* made = new Pool;
      constexpr auto mutex = []() -> std::mutex& { return instance().mutex_; };
      make_fork_wait_for<mutex>();
      return made;
    }();
    return *pool;
  }

  std::uint8_t* take(SizeClass size) {
    {
      std::lock_guard lock(mutex_);
      auto& shelf = shelves_[size.number];
      if (!shelf.empty()) {
        std::uint8_t* data = shelf.back();
        shelf.pop_back();
        retained_ -= size.bytes;
        return data;
      }
    }
    return fresh(size.bytes);
  }

  void put(std::uint8_t* data, SizeClass size) noexcept {
    try {
      std::lock_guard lock(mutex_);
      if (retained_ + size.bytes <= kPoolRetainedBytes) {
        shelves_[size.number].push_back(data);
        retained_ += size.bytes;
        return;
      }
    } catch (const std::bad_alloc&) {
      // The pool has no memory to note it in, so it is freed.
    }
    discard(data, size.bytes);
  }

  std::size_t retained() noexcept {
    std::lock_guard lock(mutex_);
    return retained_;
  }

  void trim() noexcept {
    std::lock_guard lock(mutex_);
    for (unsigned number = 0; number < kClasses; ++number) {
      const std::size_t bytes = bytes_of(number);
      for (std::uint8_t* data : shelves_[number]) discard(data, bytes);
      shelves_[number].clear();
    }
    retained_ = 0;
  }

 private:
  static std::size_t bytes_of(unsigned number) noexcept {
    const std::size_t base = kMinBytes << (number / kStepsPerDoubling);
    return base + (number % kStepsPerDoubling) * (base / kStepsPerDoubling);
  }

  std::mutex mutex_;
  std::size_t retained_ = 0;
  std::array<std::vector<std::uint8_t*>, kClasses> shelves_;
};

}  // namespace

PooledBuffer::PooledBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  // Some systems promise more memory than they have, and end the process that uses it.
  if (bytes > max_memory_bytes()) throw OutOfMemory(bytes);
  const SizeClass size = size_class_of(bytes);
  data_ = Pool::instance().take(size);
  capacity_ = size.bytes;
}

void PooledBuffer::release() noexcept {
  if (data_ != nullptr) Pool::instance().put(data_, size_class_of(capacity_));
}

std::size_t pool_retained_bytes() noexcept {
  return Pool::instance().retained();
}
void pool_trim() noexcept {
  Pool::instance().trim();
}

}  // namespace tfrfast
