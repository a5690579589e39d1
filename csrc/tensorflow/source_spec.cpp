#include "tensorflow/source_spec.h"

#include "tensorflow/packed_text.h"

#include "core/base/hashing.h"

namespace tfrfast::tensorflow {
namespace {

constexpr std::string_view kMagic = "tfrfsrc1";
constexpr std::uint64_t kPlanned = 1, kSkipDamage = 2, kZeroCopy = 4;
constexpr unsigned kCompressionShift = 3;
constexpr std::int64_t kFindOut = 3;  // behind the values of Compression

PackedTextReader open(std::string_view text) {
  return PackedTextReader(text, kMagic, "source");
}

}  // namespace

std::string SourceSpec::encode() const {
  PackedTextWriter body("");
  body.number((planned ? kPlanned : 0) | (skip_damage ? kSkipDamage : 0) |
              (zero_copy ? kZeroCopy : 0) |
              static_cast<std::uint64_t>(compression_code(compression)) << kCompressionShift);
  body.number(shards.size());
  for (const ShardSpec& shard : shards) {
    body.number(shard.file_bytes);
    body.number(shard.record_count);
    body.string(shard.path);
  }
  PackedTextWriter whole(kMagic);
  whole.number(fnv1a(body.text()));
  whole.raw(body.text());
  return whole.text();
}

SourceSpec decode_source(std::string_view text) {
  PackedTextReader reader = open(text);
  const std::uint64_t hash = reader.number();
  if (hash != fnv1a(reader.rest())) reader.refuse();
  SourceSpec spec;
  const std::uint64_t flags = reader.number();
  spec.planned = (flags & kPlanned) != 0;
  spec.skip_damage = (flags & kSkipDamage) != 0;
  spec.zero_copy = (flags & kZeroCopy) != 0;
  spec.compression = compression_of_code(static_cast<std::int64_t>(flags >> kCompressionShift));
  const std::size_t count = reader.count();
  spec.shards.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    ShardSpec shard;
    shard.file_bytes = reader.number();
    shard.record_count = reader.number();
    shard.path = reader.string();
    spec.shards.push_back(std::move(shard));
  }
  return spec;
}

std::int64_t compression_code(std::optional<Compression> compression) noexcept {
  return compression ? static_cast<std::int64_t>(*compression) : kFindOut;
}

std::optional<Compression> compression_of_code(std::int64_t code) noexcept {
  if (code < 0 || code >= kFindOut) return {};
  return static_cast<Compression>(code);
}

std::uint64_t source_hash(std::string_view text) {
  return open(text).number();
}

}  // namespace tfrfast::tensorflow
