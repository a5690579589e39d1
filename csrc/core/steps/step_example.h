// Writes the bytes of a step's Example around the copied pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/steps/step_form.h"

namespace tfrfast {

// The beginning of a map entry: the feature's name.
std::string key_field(std::string_view name);

// An entry with a list of `list_bytes` bytes: the name from key_field(), and the messages around
// the list.
class EntryHead {
 public:
  EntryHead(const std::string& key, StepForm form, std::uint64_t list_bytes) noexcept;

  std::uint64_t entry_bytes() const noexcept { return entry_bytes_; }  // includes the list
  // Writes everything before the list. Returns the place of the list.
  std::uint8_t* put(std::uint8_t* out) const noexcept;

 private:
  const std::string& key_;
  StepForm form_;
  std::uint64_t list_bytes_;     // size of the values
  std::uint64_t message_bytes_;  // size of the list message with the values
  std::uint64_t feature_bytes_;
  std::uint64_t content_bytes_;
  std::uint64_t entry_bytes_;
};

// The size of an entry whose content is copied whole, with tag and length.
inline std::uint64_t whole_entry_bytes(std::uint64_t content_bytes) noexcept {
  return 1 + varint_bytes(content_bytes) + content_bytes;
}
inline std::uint8_t* put_message_head(std::uint8_t* out, unsigned field,
                                      std::uint64_t bytes) noexcept {
  *out++ = bytes_tag(field);
  return put_varint(out, bytes);
}

}  // namespace tfrfast
