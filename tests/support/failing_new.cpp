// If preloaded, makes one `new` of C++ fail: after `fail_after(n)`, n calls succeed and the next
// call fails.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> left{-1};

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (left.load() >= 0 && left.fetch_sub(1) == 0) return nullptr;
  return std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr std::size_t kUsual = alignof(std::max_align_t);

}  // namespace

extern "C" void fail_after(long calls) {
  left = calls;
}

void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, kUsual);
}
void* operator new[](std::size_t bytes) {
  return allocate_or_throw(bytes, kUsual);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kUsual);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
