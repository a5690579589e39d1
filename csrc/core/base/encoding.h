// Encodes descriptions as bytes that travel in a graph, a pickle or to another process. A tag, the
// encoding's version and a fingerprint come first. Numbers and strings follow end to end,
// little-endian.
//
// A description lists its members once, in a function that an Encoder and a Decoder take:
//
//   constexpr auto code_form = [](auto& coder, auto& form) {
//     coder.number(form.type);
//     coder.integers(form.shape);
//   };
//
// The Encoder writes the members of a const form. The Decoder reads them into a form.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
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
  void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  template <class Enum>
  void choice(Enum value, Enum) {
    number(static_cast<std::uint64_t>(value));
  }
  void string(std::string_view value);
  void integers(std::span<const std::int64_t> values);
  // The bytes of all items.
  template <class Item>
  void table(const std::vector<Item>& items) {
    string({reinterpret_cast<const char*>(items.data()), items.size() * sizeof(Item)});
  }
  // A value by its name: name_of(value).
  template <class Value, class NameOf, class Find>
  void named(const Value& value, const NameOf& name_of, const Find&) {
    string(name_of(value));
  }
  template <class Value, class Code>
  void optional(const std::optional<Value>& value, const Code& code) {
    flag(value.has_value());
    optional_if(value.has_value(), value, code);
  }
  // A value that is there if earlier members say so.
  template <class Value, class Code>
  void optional_if(bool is_there, const std::optional<Value>& value, const Code& code) {
    if (is_there) code(*value);
  }
  template <class Items, class Code>
  void list(const Items& items, const Code& code) {
    number(items.size());
    for (const auto& item : items) code(item);
  }
  // A map from names. code(value) comes after each name.
  template <class Map, class Code>
  void by_name(const Map& map, const Code& code) {
    list(map, [&](const auto& entry) {
      string(entry.first);
      code(entry.second);
    });
  }
  template <class Set>
  void names(const Set& set) {
    list(set, [&](const std::string& name) { string(name); });
  }
  // A whole encoding inside this one.
  template <class Description, class Code>
  void encoding(const EncodedKind& kind, const Description& description, const Code& code);
  void require(bool, const char*) const noexcept {}  // a Decoder checks
  template <class Code>
  void nested(const Code& code) {
    code();
  }
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
  std::int64_t integer() { return static_cast<std::int64_t>(number()); }
  bool flag();
  std::string_view string();
  std::vector<std::int64_t> integers();
  std::size_t count();  // of the items that follow, each at least a byte long

  // The counterparts of the Encoder's members.
  template <class Number>
  void number(Number& value) {
    value = static_cast<Number>(number_to(std::numeric_limits<Number>::max()));
  }
  template <class Integer>
  void integer(Integer& value) {
    const std::int64_t wide = integer();
    value = static_cast<Integer>(wide);
    if (value != wide) {
      refuse("an integer of " + std::to_string(8 * sizeof(Integer)) + " bits is " +
             std::to_string(wide));
    }
  }
  void flag(bool& value) { value = flag(); }
  void real(double& value) { value = std::bit_cast<double>(number()); }
  template <class Enum>
  void choice(Enum& value, Enum last) {  // an enum whose values are 0 to `last`
    value = static_cast<Enum>(number_to(static_cast<std::uint64_t>(last)));
  }
  void string(std::string& value) { value = string(); }
  void integers(std::vector<std::int64_t>& values) { values = integers(); }
  template <class Item>
  void table(std::vector<Item>& items) {
    static_assert(std::is_trivially_copyable_v<Item>);
    const std::string_view bytes = string();
    if (bytes.size() % sizeof(Item) != 0) refuse("a table has no whole number of items");
    items.resize(bytes.size() / sizeof(Item));
    if (!bytes.empty()) std::memcpy(items.data(), bytes.data(), bytes.size());
  }
  // find(name) throws for an unknown name.
  template <class Value, class NameOf, class Find>
  void named(Value& value, const NameOf&, const Find& find) {
    value = find(string());
  }
  template <class Value, class Code>
  void optional(std::optional<Value>& value, const Code& code) {
    optional_if(flag(), value, code);
  }
  template <class Value, class Code>
  void optional_if(bool is_there, std::optional<Value>& value, const Code& code) {
    if (is_there) code(value.emplace());
  }
  template <class Items, class Code>
  void list(Items& items, const Code& code) {
    for (std::size_t left = count(); left > 0; --left) code(items.emplace_back());
  }
  // Names ascend.
  template <class Map, class Code>
  void by_name(Map& map, const Code& code) {
    each_name([&](std::string_view name) { code(map[std::string(name)]); });
  }
  template <class Set>
  void names(Set& set) {
    each_name([&](std::string_view name) { set.emplace(name); });
  }
  template <class Description, class Code>
  void encoding(const EncodedKind& kind, Description& description, const Code& code);
  void require(bool fits, const char* why) const {
    if (!fits) refuse(why);
  }
  // For descriptions that hold others of their kind. Limits the depth.
  template <class Code>
  void nested(const Code& code) {
    const Nesting level(*this);
    code();
  }

  // Keep a Nesting alive while decoding a nested description. Limits the depth of nesting.
  class Nesting {
   public:
    explicit Nesting(Decoder& decoder);
    ~Nesting() { --decoder_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Decoder& decoder_;
  };

  std::string_view rest() const noexcept { return rest_; }  // not read yet
  void finish() const;                                      // throws if bytes are left
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  template <class Code>
  void each_name(const Code& code) {
    std::optional<std::string_view> last;
    for (std::size_t left = count(); left > 0; --left) {
      const std::string_view name = string();
      if (last && name <= *last) refuse("names have another order");
      code(name);
      last = name;
    }
  }
  std::string_view take(std::uint64_t bytes);
  std::uint64_t number_to(std::uint64_t last);

  const EncodedKind& kind_;
  std::string_view rest_;
  int depth_ = 0;
};

// A whole encoding, whose members are those of code(coder, description).
template <class Description, class Code>
std::string encode_as(const EncodedKind& kind, const Description& description, const Code& code) {
  Encoder encoder(kind);
  code(encoder, description);
  return encoder.finish();
}
template <class Description, class Code>
Description decode_as(const EncodedKind& kind, std::string_view encoded, const Code& code) {
  Decoder decoder(kind, encoded);
  Description description;
  code(decoder, description);
  decoder.finish();
  return description;
}

template <class Description, class Code>
void Encoder::encoding(const EncodedKind& kind, const Description& description, const Code& code) {
  string(encode_as(kind, description, code));
}
template <class Description, class Code>
void Decoder::encoding(const EncodedKind& kind, Description& description, const Code& code) {
  description = decode_as<Description>(kind, string(), code);
}

// The first bytes of an encoding. Two encodings are equal if their heads are equal.
std::string_view head_of(std::string_view encoded) noexcept;

}  // namespace tfrfast
