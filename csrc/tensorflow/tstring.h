// TensorFlow's string, as in the tensors of every release since 2.4: 24 bytes, whose two lowest
// bits give the kind.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace tfrfast::tensorflow {

static_assert(std::endian::native == std::endian::little, "The layout below is little-endian.");

// Keeps a view's bytes alive. From TensorFlow 2.21 on, the runtime counts references through these
// calls. Earlier runtimes ignore the field, so they must not be given views.
struct StringOwner {
  void (*ref)(StringOwner* self);
  bool (*unref)(StringOwner* self);  // true for the last reference
  void* object;
};

class TString {
 public:
  static constexpr std::size_t kSmallCapacity = 22;

  std::string_view read() const noexcept {
    const auto* raw = reinterpret_cast<const char*>(words_);
    const auto size = static_cast<std::size_t>(words_[0] >> 2);
    switch (words_[0] & 3) {
      case kSmall:
        return {raw + 1, static_cast<std::size_t>(static_cast<std::uint8_t>(raw[0]) >> 2)};
      case kLarge:
        return {reinterpret_cast<const char*>(words_[2]), size};
      case kView:
        return {reinterpret_cast<const char*>(words_[1]), size};
      default: {  // kOffset
        std::uint32_t parts[2];
        std::memcpy(parts, raw, sizeof parts);
        return {raw + parts[1], parts[0] >> 2};
      }
    }
  }

  // Overwrite a string, which must own nothing. The strings of a new tensor own nothing.
  void write_small(const void* bytes, std::size_t count) noexcept {  // up to kSmallCapacity
    auto* raw = reinterpret_cast<char*>(words_);
    raw[0] = static_cast<char>(count << 2);
    if (count > 0) std::memcpy(raw + 1, bytes, count);
    raw[1 + count] = '\0';
  }

  void write_copy(const void* bytes, std::size_t count) {
    if (count <= kSmallCapacity) return write_small(bytes, count);
    // Rounded as in the runtime.
    const std::size_t capacity = ((count + 16) & ~std::size_t{15}) - 1;
    auto* memory = static_cast<char*>(std::malloc(capacity + 1));  // the runtime calls free()
    if (memory == nullptr) throw std::bad_alloc();
    std::memcpy(memory, bytes, count);
    memory[count] = '\0';
    write_words(count, kLarge, capacity, reinterpret_cast<std::uintptr_t>(memory));
  }

  // Takes over one reference to `owner`.
  void write_view(const void* bytes, std::size_t count, StringOwner* owner) noexcept {
    write_words(count, kView, reinterpret_cast<std::uintptr_t>(bytes),
                reinterpret_cast<std::uintptr_t>(owner));
  }

 private:
  // The words after the size: capacity and bytes of a large string, bytes and owner of a view.
  static constexpr std::uint64_t kSmall = 0, kLarge = 1, kView = 3;

  void write_words(std::size_t size, std::uint64_t kind, std::uint64_t second,
                   std::uint64_t third) noexcept {
    words_[0] = (static_cast<std::uint64_t>(size) << 2) | kind;
    words_[1] = second;
    words_[2] = third;
  }

  std::uint64_t words_[3];
};
static_assert(sizeof(TString) == 24);

// Whether records are handed out as counted views. Off until Python has looked at the runtime.
bool hands_out_views() noexcept;
void hand_out_views(bool yes) noexcept;

}  // namespace tfrfast::tensorflow
