// Reuses aligned memory. Batches come and go at gigabytes a second, and fresh pages cost more than
// reading the data that fills them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tfrfast {

// One piece of memory, aligned to 64 bytes, with undefined contents. Move-only. Returns to the
// process-wide pool when destroyed, on any thread. The pool is a cache, not a bound: a request
// never waits for memory to come back.
//
// The pool retains kPoolRetainedBytes or, if more, about as many bytes as are in use, so prefetched
// batches of any size find their memory again. It retains at most an eighth of all memory, and
// beyond kPoolRetainedBytes only sizes that were needed repeatedly.
class PooledBuffer {
 public:
  PooledBuffer() noexcept = default;
  explicit PooledBuffer(std::size_t bytes);  // throws OutOfMemory
  PooledBuffer(PooledBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  PooledBuffer& operator=(PooledBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~PooledBuffer() { release(); }

  std::uint8_t* data() const noexcept { return data_; }
  std::size_t capacity() const noexcept { return capacity_; }  // at least the requested bytes

  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data_);
  }

 private:
  void release() noexcept;

  std::uint8_t* data_ = nullptr;
  std::size_t capacity_ = 0;
};

inline constexpr std::size_t kPoolAlignment = 64;
inline constexpr std::size_t kPoolRetainedBytes = std::size_t{256} << 20;

std::size_t pool_retained_bytes() noexcept;  // bytes in the pool now
void pool_trim() noexcept;                   // frees all bytes in the pool

}  // namespace tfrfast
