// Text from strangers, as a terminal may show it.
#pragma once

#include <string>
#include <string_view>

namespace tfrfast {

// The same text, with an escape such as \x1b or \u202e for each character that a terminal would
// obey or hide: controls, line ends, marks that reorder text, bytes that are not UTF-8. Names of
// files and features, and what servers answer, are shown this way. Printable text comes back as it
// is.
std::string printable(std::string_view text);

}  // namespace tfrfast
