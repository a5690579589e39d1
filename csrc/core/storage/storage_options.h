// Options for files that are not on this machine. They travel in graphs and to other processes, and
// never hold a secret.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/encoding.h"

namespace tfrfast {

struct StorageOptions {
  static constexpr EncodedKind kEncoding{"description of a storage", "tfSO"};

  std::string access;        // for the client that makes requests, in its own words
  std::string cache_folder;  // empty without a cache
  std::uint64_t cache_limit_bytes = 0;
  // The endpoint or the account, for URLs that do not name one. A cache keeps the objects of
  // different places apart.
  std::string place;
  // The cache for the inflated bytes of compressed shards. Empty without one.
  std::string inflated_folder;
  std::uint64_t inflated_limit_bytes = 0;

  std::string encode() const;
  static StorageOptions decode(std::string_view encoded);  // throws Error(invalid)
  // Like encode() and decode(), as a part of another description.
  void write_to(Encoder& encoder) const;
  static StorageOptions read_from(Decoder& decoder);
};

}  // namespace tfrfast
