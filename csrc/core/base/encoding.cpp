#include "core/base/encoding.h"

#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/hashing.h"

namespace tfrfast {
namespace {

// The head: 4 characters, u32 version, u64 fingerprint of all later bytes.
constexpr std::size_t kTagBytes = 4;
constexpr std::size_t kVersionBytes = sizeof(std::uint32_t);
constexpr std::size_t kFingerprintAt = kTagBytes + kVersionBytes;
constexpr std::size_t kHeadBytes = kFingerprintAt + sizeof(std::uint64_t);
constexpr int kMaxDepth = 16;

const std::uint8_t* unsigned_of(const char* bytes) noexcept {
  return reinterpret_cast<const std::uint8_t*>(bytes);
}

template <class Integer>
void append(std::string& bytes, Integer value) {
  std::uint8_t stored[sizeof value];
  store_little_endian(stored, value);
  bytes.append(reinterpret_cast<const char*>(stored), sizeof stored);
}

[[noreturn]] void refuse_as(const EncodedKind& kind, const std::string& what) {
  throw Error(ErrorKind::invalid,
              what + " Make the " + kind.name + ", or the graph that holds it, again.");
}

}  // namespace

Encoder::Encoder(const EncodedKind& kind) : bytes_(kind.tag, kTagBytes) {
  append(bytes_, kind.version);
  append(bytes_, std::uint64_t{0});
}

void Encoder::number(std::uint64_t value) {
  append(bytes_, value);
}

void Encoder::string(std::string_view value) {
  number(value.size());
  bytes_ += value;
}

void Encoder::integers(std::span<const std::int64_t> values) {
  number(values.size());
  bytes_.reserve(bytes_.size() + values.size_bytes());
  for (const std::int64_t value : values) integer(value);
}

std::string Encoder::finish() {
  const std::uint64_t fingerprint = fnv1a(std::string_view(bytes_).substr(kHeadBytes));
  store_little_endian(reinterpret_cast<std::uint8_t*>(bytes_.data()) + kFingerprintAt, fingerprint);
  return std::move(bytes_);
}

Decoder::Decoder(const EncodedKind& kind, std::string_view bytes) : kind_(kind), rest_(bytes) {
  const std::string name = kind.name;
  if (bytes.size() < kHeadBytes || bytes.substr(0, kTagBytes) != kind.tag) {
    refuse_as(kind, "This is not a " + name + " of this version of tfrfast.");
  }
  const auto version = load_little_endian<std::uint32_t>(unsigned_of(bytes.data()) + kTagBytes);
  if (version != kind.version) {
    refuse_as(kind, "This " + name + " is encoded in version " + std::to_string(version) +
                        ", and this tfrfast reads version " + std::to_string(kind.version) + ".");
  }
  rest_.remove_prefix(kHeadBytes);
  if (load_little_endian<std::uint64_t>(unsigned_of(bytes.data()) + kFingerprintAt) !=
      fnv1a(rest_)) {
    refuse("its bytes do not match their fingerprint");
  }
}

std::string_view Decoder::take(std::uint64_t bytes) {
  if (bytes > rest_.size()) refuse("it ends too early");
  const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(bytes));
  rest_.remove_prefix(taken.size());
  return taken;
}

std::uint64_t Decoder::number() {
  return load_little_endian<std::uint64_t>(unsigned_of(take(sizeof(std::uint64_t)).data()));
}

bool Decoder::flag() {
  return number_to(1) == 1;
}

std::uint64_t Decoder::number_to(std::uint64_t last) {
  const std::uint64_t value = number();
  if (value > last) {
    refuse("a number from 0 to " + std::to_string(last) + " is " + std::to_string(value));
  }
  return value;
}

std::string_view Decoder::string() {
  return take(number());
}

std::vector<std::int64_t> Decoder::integers() {
  const std::uint64_t wanted = number();
  if (wanted > rest_.size() / sizeof(std::int64_t)) refuse("it ends too early");
  std::vector<std::int64_t> values(static_cast<std::size_t>(wanted));
  for (std::int64_t& value : values) value = integer();
  return values;
}

std::size_t Decoder::count() {
  const std::uint64_t value = number();
  if (value > rest_.size()) refuse("it ends too early");
  return static_cast<std::size_t>(value);
}

Decoder::Nesting::Nesting(Decoder& decoder) : decoder_(decoder) {
  if (decoder.depth_ == kMaxDepth) decoder.refuse("it is nested too deeply");
  ++decoder.depth_;
}

void Decoder::finish() const {
  if (!rest_.empty()) refuse(std::to_string(rest_.size()) + " bytes follow its end");
}

void Decoder::refuse(const std::string& why) const {
  refuse_as(kind_, "This " + std::string(kind_.name) + " is damaged: " + why + ".");
}

std::string_view head_of(std::string_view encoded) noexcept {
  return encoded.substr(0, kHeadBytes);
}

}  // namespace tfrfast
