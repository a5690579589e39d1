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
constexpr std::uint64_t kPoolMemoryShare = 8;  // of all memory

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

std::align_val_t alignment_of(std::size_t bytes) noexcept {
  return std::align_val_t(bytes >= kHugePage ? kHugePage : kPoolAlignment);
}

// Null if the system has no memory.
std::uint8_t* fresh(std::size_t bytes) noexcept {
  auto* data = static_cast<std::uint8_t*>(::operator new(bytes, alignment_of(bytes), std::nothrow));
#if defined(TFRFAST_LINUX)
  if (data != nullptr && bytes >= kHugePage) ::madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return data;
}

void discard(std::uint8_t* data, std::size_t bytes) noexcept {
  ::operator delete(data, alignment_of(bytes));
}

class Pool {
 public:
  // Never destroyed: buffers may be released while statics are destroyed.
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
      lent_ += size.bytes;
      last_taken_[size.number] = ++taken_;
      auto& shelf = shelves_[size.number];
      if (!shelf.empty()) {
        std::uint8_t* data = shelf.back();
        shelf.pop_back();
        retained_ -= size.bytes;
        return data;
      }
      misses_[size.number] = std::min(misses_[size.number] + 1, kRepeatedly);
    }
    std::uint8_t* data = fresh(size.bytes);
    if (data == nullptr) {
      shrink_to(0);
      data = fresh(size.bytes);
    }
    if (data == nullptr) {
      std::lock_guard lock(mutex_);
      lent_ -= size.bytes;
      throw OutOfMemory(size.bytes);
    }
    return data;
  }

  void put(std::uint8_t* data, SizeClass size) noexcept {
    std::size_t bound;
    std::array<Memory, kMaxStale> stale;
    std::size_t stale_count = 0;
    {
      std::lock_guard lock(mutex_);
      bound = std::max(kPoolRetainedBytes, std::min(lent_ + lent_ / 8, max_retained_bytes()));
      lent_ -= size.bytes;
      // The larger bound is only for sizes that were needed repeatedly.
      const std::size_t own_bound =
          misses_[size.number] == kRepeatedly ? bound : kPoolRetainedBytes;
      while (retained_ + size.bytes > own_bound && stale_count < kMaxStale &&
             take_stale(&stale[stale_count])) {
        ++stale_count;
      }
      if (retained_ + size.bytes <= own_bound && shelve(data, size)) {
        retained_ += size.bytes;
        data = nullptr;
      }
    }
    if (data != nullptr) discard(data, size.bytes);
    for (std::size_t i = 0; i < stale_count; ++i) discard(stale[i].data, stale[i].bytes);
    // A small buffer does not shrink the pool: it may come back between two batches, when fewer
    // bytes are in use than usual.
    if (size.bytes >= kPoolRetainedBytes / 16) shrink_to(bound);
  }

  std::size_t retained() noexcept {
    std::lock_guard lock(mutex_);
    return retained_;
  }

  // Frees buffers, the largest first, until the pool retains at most `bound`.
  void shrink_to(std::size_t bound) noexcept {
    for (;;) {
      std::uint8_t* data = nullptr;
      std::size_t bytes = 0;
      {
        std::lock_guard lock(mutex_);
        if (retained_ <= bound) return;
        unsigned number = kClasses - 1;
        while (shelves_[number].empty()) --number;
        data = shelves_[number].back();
        bytes = bytes_of(number);
        shelves_[number].pop_back();
        retained_ -= bytes;
      }
      discard(data, bytes);
    }
  }

 private:
  static std::size_t bytes_of(unsigned number) noexcept {
    const std::size_t base = kMinBytes << (number / kStepsPerDoubling);
    return base + (number % kStepsPerDoubling) * (base / kStepsPerDoubling);
  }

  struct Memory {
    std::uint8_t* data;
    std::size_t bytes;
  };
  static constexpr std::size_t kMaxStale = 8;
  static constexpr int kRepeatedly = 2;
  static constexpr std::uint64_t kStaleAfter = 64;  // takes of other sizes

  // If some size has not been taken for long, takes a buffer of the longest unused size off its
  // shelf. Otherwise old sizes would keep newer sizes out for ever.
  bool take_stale(Memory* memory) noexcept {
    unsigned stalest = kClasses;
    std::uint64_t since = taken_ - std::min(taken_, kStaleAfter);
    for (unsigned number = 0; number < kClasses; ++number) {
      if (shelves_[number].empty() || last_taken_[number] >= since) continue;
      stalest = number;
      since = last_taken_[number];
    }
    if (stalest == kClasses) return false;
    *memory = {shelves_[stalest].back(), bytes_of(stalest)};
    shelves_[stalest].pop_back();
    retained_ -= memory->bytes;
    return true;
  }

  bool shelve(std::uint8_t* data, SizeClass size) noexcept {
    try {
      shelves_[size.number].push_back(data);
      return true;
    } catch (const std::bad_alloc&) {
      return false;  // no memory for the shelf's entry
    }
  }

  static std::size_t max_retained_bytes() noexcept {
    return static_cast<std::size_t>(max_memory_bytes() / kPoolMemoryShare);
  }

  std::mutex mutex_;
  std::size_t lent_ = 0;
  std::size_t retained_ = 0;
  std::array<std::vector<std::uint8_t*>, kClasses> shelves_;
  std::uint64_t taken_ = 0;                           // buffers taken so far
  std::array<std::uint64_t, kClasses> last_taken_{};  // value of `taken_` at the class's last take
  std::array<int, kClasses> misses_{};  // takes that found the shelf empty, up to kRepeatedly
};

}  // namespace

PooledBuffer::PooledBuffer(std::size_t bytes) {
  if (bytes == 0) return;
  // Some systems promise more memory than exists, and kill a process that uses the memory.
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
  Pool::instance().shrink_to(0);
}

}  // namespace tfrfast
