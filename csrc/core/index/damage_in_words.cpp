#include "core/index/damage_in_words.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/crc32c/hex.h"
#include "core/shard/lookalikes.h"

namespace tfrfast {
namespace {

std::string kind_of(const StoredFile& file) {
  std::uint8_t head[kLookAlikeBytes], tail[kLookAlikeBytes];
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(file.bytes(), kLookAlikeBytes));
  file.read(0, head, count);
  if (file.is_inflated()) return look_alike({head, count}, {});  // the end may be far
  file.read(file.bytes() - count, tail, count);
  return look_alike({head, count}, {tail, count});
}

// Throws for a file that does not begin with a header and has no records.
[[noreturn]] void throw_no_tfrecord(const StoredFile& file, const Damage& damage,
                                    const ErrorPlace& place) {
  const std::string kind = kind_of(file);
  const char* const looks = file.is_inflated() ? " (inflated, it looks like " : " (it looks like ";
  const std::string seen = damage.kind == DamageKind::unexplored
                               ? "its first " + std::to_string(damage.end) + " bytes"
                               : "its " + std::to_string(file.bytes()) + " bytes";
  throw Error(ErrorKind::corrupt,
              "'" + file.path() + "' is not a TFRecord file" +
                  (kind.empty() ? "" : looks + kind + ")") + ": " + seen +
                  " hold no record. Give only TFRecord files.",
              place);
}

}  // namespace

void throw_damage(const IndexedShard& shard, const Damage& damage) {
  const std::string& path = shard.file->path();
  const ErrorPlace place{path, static_cast<std::int64_t>(damage.records_before),
                         static_cast<std::int64_t>(damage.begin)};
  const std::string where = "record " + std::to_string(damage.records_before) + " at " +
                            shard.file->describe_byte(damage.begin);
  const std::string advice =
      " Restore the file, or read its other records with on_corruption=\"skip\".";
  std::uint8_t bytes[kHeaderBytes] = {};
  // The next good record may begin inside the expected header.
  if (shard.file->bytes() - std::min(damage.begin, shard.file->bytes()) >= sizeof bytes) {
    shard.file->read(damage.begin, bytes, sizeof bytes);
  }
  const FrameHeader header = decode_header(bytes);
  const std::uint64_t left = damage.end - damage.begin;
  switch (damage.kind) {
    case DamageKind::lost_track:
    case DamageKind::unexplored:
    case DamageKind::bad_header: {
      std::string lost = "No good record follows.";
      if (damage.kind == DamageKind::unexplored) {
        lost = "No good record begins in the next " + std::to_string(left) +
               " bytes; later bytes were not examined.";
      } else if (damage.kind == DamageKind::lost_track) {
        lost = "So many false headers follow that good records after them were not looked for.";
      } else if (damage.end < shard.file->bytes()) {
        lost = "The next good record begins at " + shard.file->describe_byte(damage.end) + ".";
      }
      const bool may_be_compressed = damage.begin == 0 && !shard.file->is_inflated();
      const Compression compression =
          may_be_compressed ? detect_compression(*shard.file) : Compression::none;
      std::string what_to_do = advice;
      const bool is_all = damage.begin == 0 && (damage.end >= shard.file->bytes() ||
                                                damage.kind == DamageKind::unexplored);
      const bool was_recognised = shard.file->is_inflated() && !kind_of(*shard.file).empty();
      if (is_all && (was_recognised || (may_be_compressed && compression == Compression::none))) {
        throw_no_tfrecord(*shard.file, damage, place);
      }
      if (compression != Compression::none) {
        const std::string name = compression_name(compression);
        lost =
            "It begins like a " + name + "-compressed file, but was opened as an uncompressed one.";
        what_to_do = " Open it with \"" + name + "\" as its compression.";
      }
      throw Error(ErrorKind::corrupt,
                  "'" + path + "' is corrupt: the length of " + where + " has masked CRC-32C " +
                      hex(masked_crc32c(bytes, sizeof(std::uint64_t))) + ", but the file expects " +
                      hex(header.length_crc) + ". " + lost + what_to_do,
                  place);
    }
    case DamageKind::torn_header:
      if (damage.begin == 0 && !kind_of(*shard.file).empty()) {
        throw_no_tfrecord(*shard.file, damage, place);
      }
      throw Error(ErrorKind::truncated,
                  "'" + path + "' is truncated: " + where + " should have a header of " +
                      std::to_string(kHeaderBytes) + " bytes, but the file ends after " +
                      std::to_string(left) + "." + advice,
                  place);
    case DamageKind::torn_payload:
      throw Error(ErrorKind::truncated,
                  "'" + path + "' is truncated: " + where + " should have " +
                      std::to_string(header.payload_bytes) + " bytes (" +
                      std::to_string(kFrameOverhead) + " more with its frame), but the file ends " +
                      std::to_string(left) + " bytes after it begins." + advice,
                  place);
    case DamageKind::torn_stream:
      throw Error(ErrorKind::truncated,
                  "'" + path + "' is truncated: its compressed data end inside a member, after " +
                      shard.file->describe_byte(shard.file->bytes()) +
                      ". Good records: " + std::to_string(damage.records_before) + "." + advice,
                  place);
    case DamageKind::bad_stream: {
      if (!shard.file->is_inflated()) {
        const std::string name = compression_name(shard.index->facts().compression);
        throw Error(ErrorKind::corrupt,
                    "'" + path + "' is corrupt: it does not begin like a " + name +
                        "-compressed file, which compression=\"" + name +
                        "\" says it is. Restore the file, leave compression out to detect it, or "
                        "skip the file with on_corruption=\"skip\".",
                    place);
      }
      std::string last = shard.file->describe_byte(shard.file->bytes());
      std::string next;
      if (damage.end < shard.file->bytes()) {
        last = damage.begin == 0 ? "its beginning" : shard.file->describe_byte(damage.begin - 1);
        next = " The next good record begins at " + shard.file->describe_byte(damage.end) + ".";
      }
      throw Error(ErrorKind::corrupt,
                  "'" + path +
                      "' is corrupt: its compressed data cannot be inflated, or do not "
                      "match their checksum, after " +
                      last + ". Good records before that: " +
                      std::to_string(damage.records_before) + "." + next + advice,
                  place);
    }
  }
  throw Error(ErrorKind::corrupt, "'" + path + "' is damaged at " + where + "." + advice, place);
}

}  // namespace tfrfast
