// Names a cache in a graph, or in a process: a text before the options of a storage.
#pragma once

#include <cstdint>
#include <string>

namespace tfrfast {

// Splits `access` into the cache and the options for the client. A cache is named by a prefix
// "cache:<limit>:<bytes of the folder's name>:<folder>", followed by "at:<bytes>:<place>" if there
// is a place.
struct CacheAccess {
  std::string folder;  // empty without a cache
  std::string place;   // the place that URLs lead to, if URLs do not say: an endpoint, an account
  std::uint64_t limit_bytes = 0;
  std::string client;
};
CacheAccess split_access(const std::string& access);  // throws Error invalid

}  // namespace tfrfast
