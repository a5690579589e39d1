// Makes text from files and servers safe to show on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tfrfast {

// Replaces each character that a terminal would obey or hide by an escape such as \x1b or \u202e:
// controls, line ends, marks that reorder text, and bytes that are not UTF-8. Printable text is
// returned unchanged. For names of files and features, and for servers' answers.
std::string printable(std::string_view text);

}  // namespace tfrfast
