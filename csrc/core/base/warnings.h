// What users should know although nothing fails: the core collects it, bindings say it.
#pragma once

#include <string>
#include <vector>

namespace tfrfast {

// Keeps `text` for whoever takes warnings next. Of the warnings with the same `key` only the first
// one in this process counts. Safe from many threads.
void warn_once(const std::string& key, const std::string& text);

// Those that nobody has taken yet, in order.
std::vector<std::string> take_warnings();

}  // namespace tfrfast
