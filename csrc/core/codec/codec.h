// The wrappers of compressed shards around deflate data. To add a wrapper, add a file beside
// gzip.cpp and a line to the table in codec.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/storage/stored_file.h"

namespace tfrfast {

enum class Compression : std::uint8_t { none = 0, gzip = 1, zlib = 2 };

// A member's checksum so far.
using Checksum = unsigned long;

// Appends the next `count` bytes of the file to a member's header. False if the file ends first.
using MoreBytes = std::function<bool(std::size_t count)>;

inline constexpr std::size_t kMaxTrailerBytes = 8;

// The wrapper of a member. A file holds one member, or several members end to end.
struct Codec {
  Compression compression;
  const char* name;  // as TensorFlow spells it

  // -- detect
  // Whether a file that is not a plain shard may begin with `head`: the file's first 12 bytes, or
  // all bytes of a shorter file.
  bool (*may_begin)(std::span<const std::uint8_t> head) noexcept;

  // -- decode
  // Reads a member's header into `header`, which must be empty. False if no intact header follows.
  bool (*read_header)(std::vector<std::uint8_t>& header, const MoreBytes& more);
  Checksum first_checksum;
  Checksum (*add_to_checksum)(Checksum sum, std::span<const std::uint8_t> bytes);
  std::size_t trailer_bytes;
  bool (*trailer_holds)(const std::uint8_t* trailer, Checksum sum, std::uint64_t member_bytes);
  // Whether zeros after the last member are padding.
  bool zeros_are_padding;
  // The first place in `bytes` where a member may begin, or where too few bytes are left to tell.
  // After damage, reading resumes there. Null if any bytes may be a header.
  const std::uint8_t* (*find_member)(const std::uint8_t* bytes, const std::uint8_t* end) noexcept;

  // -- encode
  int window_bits;                   // selects this wrapper in zlib
  std::size_t written_header_bytes;  // header size of the members that zlib writes
  // TensorFlow reads all members of such a file, so a writer may write many small members.
  bool written_in_members;
};

// All codecs.
std::span<const Codec> codecs() noexcept;

// Must not be called with Compression::none.
const Codec& codec_of(Compression compression) noexcept;

// "", "GZIP", "ZLIB".
const char* compression_name(Compression compression) noexcept;

// Tries plain framing first: a plain shard whose first record has 376 bytes begins like ZLIB. A
// shard that is neither plain nor compressed counts as plain, so that its damage is reported.
Compression detect_compression(const StoredFile& file);

}  // namespace tfrfast
