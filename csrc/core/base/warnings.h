// What users should know although nothing fails. The core collects it, and bindings show it.
#pragma once

#include <string>
#include <vector>

namespace tfrfast {

// Keeps `text` until warnings are taken. Only the first warning with the same `key` in this process
// is kept. Safe from many threads.
void warn_once(const std::string& key, const std::string& text);

// The warnings since the last call, in order.
std::vector<std::string> take_warnings();

}  // namespace tfrfast
