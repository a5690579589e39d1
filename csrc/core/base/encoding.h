// Descriptions as bytes, for a graph, a pickle or another process to carry. A tag, the version of
// the encoding and a fingerprint come first, then numbers and strings end to end, little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tfrfast {

// What some bytes describe.
struct EncodedKind {
  const char* name;           // in errors: "plan"
  const char* tag;            // 4 characters, which no other kind has
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
  void encoded(std::string_view bytes) { bytes_ += bytes; }  // numbers and strings, already encoded

  std::string finish();  // call it once

 private:
  std::string bytes_;
};

// Reads what an Encoder wrote, in the same order. The bytes must outlive it. Every member throws
// Error invalid for bytes that no Encoder of the kind wrote.
class Decoder {
 public:
  Decoder(const EncodedKind& kind, std::string_view bytes);

  std::uint64_t number();
  std::int64_t integer() { return static_cast<std::int64_t>(number()); }
  bool flag();
  template <class Enum>
  Enum choice(Enum last) {  // an enum whose values are 0 to `last`
    return static_cast<Enum>(number_to(static_cast<std::uint64_t>(last)));
  }
  std::string_view string();
  std::vector<std::int64_t> integers();
  std::size_t count();  // how many things follow; each takes a byte or more

  // One description inside another, while this object lives. Only a few levels are allowed.
  class Level {
   public:
    explicit Level(Decoder& decoder);
    ~Level() { --decoder_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Decoder& decoder_;
  };

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

// What an encoding begins with. Encodings whose heads are the same are the same.
std::string_view head_of(std::string_view encoded) noexcept;

}  // namespace tfrfast
