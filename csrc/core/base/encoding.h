// Encodes descriptions as bytes that travel in a graph, a pickle or to another process. A tag, the
// encoding's version and a fingerprint come first. Numbers and strings follow end to end,
// little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tfrfast {

// A kind of description.
struct EncodedKind {
  const char* name;           // in errors: "plan"
  const char* tag;            // 4 characters, unique to this kind
  std::uint32_t version = 1;  // raised when the encoding changes
};

class Encoder {
 public:
  explicit Encoder(const EncodedKind& kind);

  void number(std::uint64_t value);
  void integer(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
  void flag(bool value) { number(value ? 1 : 0); }
  template <class Enum>
  void choice(Enum value) {
    number(static_cast<std::uint64_t>(value));
  }
  void string(std::string_view value);
  void integers(std::span<const std::int64_t> values);
  void encoded(std::string_view bytes) { bytes_ += bytes; }   // appends encoded bytes
  std::string_view bytes() const noexcept { return bytes_; }  // so far

  std::string finish();  // call once

 private:
  std::string bytes_;
};

// Reads the output of an Encoder, in the same order. Does not own the bytes. Every member throws
// Error invalid for bytes that no Encoder of the kind wrote.
class Decoder {
 public:
  Decoder(const EncodedKind& kind, std::string_view bytes);

  std::uint64_t number();
  std::uint32_t small_number() { return static_cast<std::uint32_t>(number_to(0xffff'ffff)); }
  std::int64_t integer() { return static_cast<std::int64_t>(number()); }
  bool flag();
  template <class Enum>
  Enum choice(Enum last) {  // an enum whose values are 0 to `last`
    return static_cast<Enum>(number_to(static_cast<std::uint64_t>(last)));
  }
  std::string_view string();
  std::vector<std::int64_t> integers();
  std::size_t count();  // of the items that follow, each at least a byte long

  // Keep a Level alive while decoding a nested description. Limits the depth of nesting.
  class Level {
   public:
    explicit Level(Decoder& decoder);
    ~Level() { --decoder_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Decoder& decoder_;
  };

  std::string_view rest() const noexcept { return rest_; }  // not read yet
  bool is_done() const noexcept { return rest_.empty(); }
  void finish() const;  // throws if bytes are left
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  std::string_view take(std::uint64_t bytes);
  std::uint64_t number_to(std::uint64_t last);

  const EncodedKind& kind_;
  std::string_view rest_;
  int depth_ = 0;
};

// The first bytes of an encoding. Two encodings are equal if their heads are equal.
std::string_view head_of(std::string_view encoded) noexcept;

}  // namespace tfrfast
