// Numbers and strings end to end in one string: how descriptions travel through a graph. Python
// writes some of them, with struct's "<q" and "<Q".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/error.h"

namespace tfrfast::tensorflow {

class PackedTextWriter {
 public:
  explicit PackedTextWriter(std::string_view magic) : text_(magic) {}
  void number(std::uint64_t value) {
    std::uint8_t bytes[sizeof value];
    store_little_endian(bytes, value);
    text_.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
  }
  void raw(std::string_view bytes) { text_ += bytes; }
  void string(std::string_view value) {
    number(value.size());
    raw(value);
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

// Throws Error(invalid), saying that this is no `what`, for text that ends too early or is another
// kind's.
class PackedTextReader {
 public:
  PackedTextReader(std::string_view text, std::string_view magic, const char* what)
      : text_(text), what_(what) {
    if (raw(magic.size()) != magic) refuse();
  }
  std::uint64_t number() {
    return load_little_endian<std::uint64_t>(
        reinterpret_cast<const std::uint8_t*>(raw(sizeof(std::uint64_t)).data()));
  }
  // Of things that follow, each of which takes a byte at least.
  std::size_t count() {
    const std::uint64_t value = number();
    if (value > text_.size()) refuse();
    return static_cast<std::size_t>(value);
  }
  std::string_view string() { return raw(number()); }
  std::string_view raw(std::uint64_t bytes) {
    if (bytes > text_.size()) refuse();
    const std::string_view taken = text_.substr(0, static_cast<std::size_t>(bytes));
    text_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() const noexcept { return text_; }

  [[noreturn]] void refuse() const {
    throw Error(ErrorKind::invalid, std::string("This is no ") + what_ +
                                        " of this version of tfrfast: the graph was built by "
                                        "another one. Build it again.");
  }

 private:
  std::string_view text_;
  const char* what_;
};

}  // namespace tfrfast::tensorflow
