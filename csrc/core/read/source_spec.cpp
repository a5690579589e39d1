#include "core/read/source_spec.h"

#include <utility>

#include "core/read/reader.h"

namespace tfrfast {
namespace {

constexpr std::int64_t kFindOut = 3;  // after the values of Compression

}  // namespace

SourceSpec SourceSpec::of(const Reader& reader) {
  const ShardSetOptions& opened = reader.shards().options();
  SourceSpec spec;
  spec.planned = true;
  spec.skip_damage = reader.options().skip_damage;
  spec.compression = opened.index.compression;
  spec.verify = reader.options().verify;
  spec.io = opened.io;
  spec.index_use = opened.index.use;
  spec.index_folder = opened.index.folder;
  spec.access = opened.index.access;
  spec.shards.reserve(reader.shards().size());
  for (std::size_t i = 0; i < reader.shards().size(); ++i) {
    const ShardSlot& shard = reader.shards().slot(i);
    spec.shards.push_back({shard.path(), shard.file_bytes(), shard.record_count()});
  }
  return spec;
}

std::string SourceSpec::encode() const {
  Encoder encoder(kEncoding);
  encoder.flag(planned);
  encoder.flag(skip_damage);
  encoder.flag(zero_copy);
  encoder.integer(compression_code(compression));
  encoder.choice(verify);
  encoder.choice(io);
  encoder.choice(index_use);
  encoder.string(index_folder);
  encoder.number(shards.size());
  for (const ShardSpec& shard : shards) {
    encoder.number(shard.file_bytes);
    encoder.number(shard.record_count);
    encoder.string(shard.path);
  }
  // The encoding of local files has no `access`, as in earlier versions.
  if (!access.empty()) encoder.string(access);
  return encoder.finish();
}

SourceSpec SourceSpec::decode(std::string_view encoded) {
  Decoder decoder(kEncoding, encoded);
  SourceSpec spec;
  spec.planned = decoder.flag();
  spec.skip_damage = decoder.flag();
  spec.zero_copy = decoder.flag();
  const std::int64_t code = decoder.integer();
  if (code < 0 || code > kFindOut) decoder.refuse("compression is " + std::to_string(code));
  spec.compression = compression_of_code(code);
  spec.verify = decoder.choice(Verify::header);
  spec.io = decoder.choice(IoMode::pread);
  spec.index_use = decoder.choice(IndexUse::proven);
  spec.index_folder = decoder.string();
  const std::size_t count = decoder.count();
  spec.shards.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    ShardSpec shard;
    shard.file_bytes = decoder.number();
    shard.record_count = decoder.number();
    shard.path = decoder.string();
    spec.shards.push_back(std::move(shard));
  }
  if (!decoder.is_done()) {
    spec.access = decoder.string();
    if (spec.access.empty()) decoder.refuse("it ends with nothing");
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

}  // namespace tfrfast
