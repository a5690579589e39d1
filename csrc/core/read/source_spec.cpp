#include "core/read/source_spec.h"

#include <utility>

#include "core/read/record_source.h"

namespace tfrfast {
namespace {

constexpr std::int64_t kFindOut = 3;  // after the values of Compression

}  // namespace

SourceSpec SourceSpec::of(const RecordSource& source) {
  const ShardSet& shards = source.shards();
  const ShardSetOptions& opened = shards.options();
  SourceSpec spec;
  spec.planned = true;
  spec.skip_damage = source.options().skip_damage;
  spec.compression = opened.index.compression;
  spec.verify = source.options().verify;
  spec.io = opened.io;
  spec.index_use = opened.index.use;
  spec.index_folder = opened.index.folder;
  spec.storage = opened.index.storage;
  spec.shards.reserve(shards.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const ShardSlot& shard = shards.slot(i);
    spec.shards.push_back({shard.path(), shard.file_bytes(), shard.record_count()});
  }
  if (source.reader() == nullptr) source.describe_parts(spec.parts);
  return spec;
}

std::string SourceSpec::encode() const {
  Encoder encoder(kEncoding);
  encoder.flag(planned);
  encoder.flag(skip_damage);
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
  storage.write_to(encoder);
  encoder.number(parts.size());
  for (const PartSpec& part : parts) {
    encoder.number(part.shard_count);
    encoder.string(part.steps);
  }
  encoder.number(edition);
  return encoder.finish();
}

SourceSpec SourceSpec::decode(std::string_view encoded) {
  Decoder decoder(kEncoding, encoded);
  SourceSpec spec;
  spec.planned = decoder.flag();
  spec.skip_damage = decoder.flag();
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
  spec.storage = StorageOptions::read_from(decoder);
  const std::size_t part_count = decoder.count();
  std::uint64_t left = count;
  for (std::size_t i = 0; i < part_count; ++i) {
    PartSpec part;
    part.shard_count = decoder.number();
    part.steps = decoder.string();
    if (part.shard_count > left) decoder.refuse("its parts have more shards than it has");
    left -= part.shard_count;
    spec.parts.push_back(std::move(part));
  }
  if (part_count != 0 && left != 0) decoder.refuse("its parts have fewer shards than it has");
  spec.edition = decoder.number();
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
