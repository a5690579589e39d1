#include "core/base/choice.h"

#include <string>

#include "core/base/error.h"

namespace tfrfast {

void refuse_choice(const char* argument, std::string_view word,
                   const std::vector<std::string_view>& choices) {
  const auto quoted = [](std::string_view text) { return '"' + std::string(text) + '"'; };
  std::string allowed;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) allowed += i + 1 < choices.size() ? ", " : " or ";
    allowed += quoted(choices[i]);
  }
  throw Error(ErrorKind::invalid,
              std::string(argument) + " is " + quoted(word) + ", but must be " + allowed + ".");
}

}  // namespace tfrfast
