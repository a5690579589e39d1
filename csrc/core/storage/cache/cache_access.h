// How a graph, or a process, names a cache: a text before the options of a storage.
#pragma once

#include <cstdint>
#include <string>

namespace tfrfast {

// Which folder `access` names as a cache, and what is left of it for the client. It begins with
// "cache:<limit>:<bytes of the folder's name>:<folder>" if it names one, and goes on with
// "at:<bytes>:<place>" if there is a place.
struct CacheAccess {
  std::string folder;  // empty without a cache
  std::string place;   // where URLs lead, if they do not say it themselves: an endpoint, an account
  std::uint64_t limit_bytes = 0;
  std::string client;
};
CacheAccess split_access(const std::string& access);  // throws Error invalid

}  // namespace tfrfast
