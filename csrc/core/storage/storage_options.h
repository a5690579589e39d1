// How to reach files that are not on this machine: options that travel in graphs and to other
// processes. Never holds a secret.
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
  // Where URLs lead if they do not say it themselves: an endpoint, an account. A cache keeps the
  // objects of different places apart.
  std::string place;
  // The cache for what compressed shards inflate to. Empty without one.
  std::string inflated_folder;
  std::uint64_t inflated_limit_bytes = 0;

  std::string encode() const;
  static StorageOptions decode(std::string_view encoded);  // throws Error(invalid)
  // The same as a part of another description.
  void write_to(Encoder& encoder) const;
  static StorageOptions read_from(Decoder& decoder);
};

}  // namespace tfrfast
