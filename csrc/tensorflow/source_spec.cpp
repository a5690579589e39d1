#include "tensorflow/source_spec.h"

#include "core/base/encoding.h"
#include "core/base/hashing.h"

namespace tfrfast::tensorflow {
namespace {

constexpr EncodedKind kSource{"source", "tfSR"};
constexpr std::int64_t kFindOut = 3;  // after the values of Compression

}  // namespace

std::string SourceSpec::encode() const {
  Encoder encoder(kSource);
  encoder.flag(planned);
  encoder.flag(skip_damage);
  encoder.flag(zero_copy);
  encoder.integer(compression_code(compression));
  encoder.number(shards.size());
  for (const ShardSpec& shard : shards) {
    encoder.number(shard.file_bytes);
    encoder.number(shard.record_count);
    encoder.string(shard.path);
  }
  return encoder.finish();
}

SourceSpec decode_source(std::string_view text) {
  Decoder decoder(kSource, text);
  SourceSpec spec;
  spec.planned = decoder.flag();
  spec.skip_damage = decoder.flag();
  spec.zero_copy = decoder.flag();
  spec.compression = compression_of_code(decoder.integer());
  const std::size_t count = decoder.count();
  spec.shards.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    ShardSpec shard;
    shard.file_bytes = decoder.number();
    shard.record_count = decoder.number();
    shard.path = decoder.string();
    spec.shards.push_back(std::move(shard));
  }
  decoder.finish();
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
  return fnv1a(head_of(text));
}

}  // namespace tfrfast::tensorflow
