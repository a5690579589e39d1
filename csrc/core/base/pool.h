// Aligned memory that is reused: batches come and go at gigabytes a second, and fresh pages cost
// more than reading what fills them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tfrfast {

// One piece of memory, aligned to 64 bytes, contents undefined. Move-only; goes back to the
// process-wide pool when destroyed, from any thread. The pool is a cache, not a bound: a request
// never waits for memory to come back.
//
// Of what was given back, the pool keeps kPoolRetainedBytes, or about as much as is in use, if that
// is more: so prefetched batches of any size find their memory again. It keeps at most an eighth of
// all memory, and beyond kPoolRetainedBytes only sizes that were needed before.
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
  std::size_t capacity() const noexcept { return capacity_; }  // at least what was asked for

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

std::size_t pool_retained_bytes() noexcept;  // what the pool holds right now
void pool_trim() noexcept;                   // gives all of it back to the operating system

}  // namespace tfrfast
