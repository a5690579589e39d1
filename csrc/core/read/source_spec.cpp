#include "core/read/source_spec.h"

#include "core/read/record_source.h"

namespace tfrfast {
namespace {

constexpr std::int64_t kFindOut = 3;  // after the values of Compression

void code_storage(Encoder& encoder, const StorageOptions& storage) {
  storage.write_to(encoder);
}
void code_storage(Decoder& decoder, StorageOptions& storage) {
  storage = StorageOptions::read_from(decoder);
}

void code_compression(Encoder& encoder, std::optional<Compression> compression) {
  encoder.integer(compression_code(compression));
}
void code_compression(Decoder& decoder, std::optional<Compression>& compression) {
  const std::int64_t code = decoder.integer();
  if (code < 0 || code > kFindOut) decoder.refuse("compression is " + std::to_string(code));
  compression = compression_of_code(code);
}

constexpr auto code_source = [](auto& coder, auto& spec) {
  coder.flag(spec.planned);
  coder.flag(spec.skip_damage);
  code_compression(coder, spec.compression);
  coder.choice(spec.verify, Verify::header);
  coder.choice(spec.io, IoMode::pread);
  coder.choice(spec.index_use, IndexUse::proven);
  coder.string(spec.index_folder);
  coder.list(spec.shards, [&](auto& shard) {
    coder.number(shard.file_bytes);
    coder.number(shard.record_count);
    coder.string(shard.path);
  });
  code_storage(coder, spec.storage);
  std::uint64_t left = spec.shards.size();
  coder.list(spec.parts, [&](auto& part) {
    coder.number(part.shard_count);
    coder.string(part.steps);
    coder.require(part.shard_count <= left, "its parts have more shards than it has");
    left -= part.shard_count;
  });
  coder.require(spec.parts.empty() || left == 0, "its parts have fewer shards than it has");
  coder.number(spec.edition);
};

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
  return encode_as(kEncoding, *this, code_source);
}

SourceSpec SourceSpec::decode(std::string_view encoded) {
  return decode_as<SourceSpec>(kEncoding, encoded, code_source);
}

std::int64_t compression_code(std::optional<Compression> compression) noexcept {
  return compression ? static_cast<std::int64_t>(*compression) : kFindOut;
}

std::optional<Compression> compression_of_code(std::int64_t code) noexcept {
  if (code < 0 || code >= kFindOut) return {};
  return static_cast<Compression>(code);
}

}  // namespace tfrfast
