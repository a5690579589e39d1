// Facts that users should know although nothing failed. The core collects, bindings show.
#pragma once

#include <string>
#include <vector>

namespace tfrfast {

// Keeps `text` for take_warnings(). Of all warnings with one `key`, a process keeps the first. Safe
// from many threads.
void warn_once(const std::string& key, const std::string& text);

// Returns the warnings since the last call, in order.
std::vector<std::string> take_warnings();

}  // namespace tfrfast
