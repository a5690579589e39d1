// The bytes of a step's Example, around the pieces that are copied into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/steps/step_form.h"

namespace tfrfast {

// The name of a feature as an entry of the map begins with it.
std::string key_field(std::string_view name);

// An entry with a list of so many bytes: its name as key_field() makes it, and the messages around
// the list.
class EntryHead {
 public:
  EntryHead(const std::string& key, StepForm form, std::uint64_t list_bytes) noexcept;

  std::uint64_t entry_bytes() const noexcept { return entry_bytes_; }  // with its list
  // Everything before the list, which goes to what is returned.
  std::uint8_t* put(std::uint8_t* out) const noexcept;

 private:
  const std::string& key_;
  StepForm form_;
  std::uint64_t list_bytes_;     // its values
  std::uint64_t message_bytes_;  // the list with its values
  std::uint64_t feature_bytes_;
  std::uint64_t content_bytes_;
  std::uint64_t entry_bytes_;
};

// An entry's content that was copied whole, with its tag and length.
inline std::uint64_t whole_entry_bytes(std::uint64_t content_bytes) noexcept {
  return 1 + varint_bytes(content_bytes) + content_bytes;
}
inline std::uint8_t* put_message_head(std::uint8_t* out, unsigned field,
                                      std::uint64_t bytes) noexcept {
  *out++ = bytes_tag(field);
  return put_varint(out, bytes);
}

}  // namespace tfrfast
