#include "core/steps/step_example.h"

#include <cstring>

namespace tfrfast {

std::string key_field(std::string_view name) {
  std::uint8_t head[1 + kMaxVarintBytes];
  const std::uint8_t* const end = put_message_head(head, 1, name.size());
  std::string field(reinterpret_cast<const char*>(head), static_cast<std::size_t>(end - head));
  return field.append(name);
}

EntryHead::EntryHead(const std::string& key, StepForm form, std::uint64_t list_bytes) noexcept
    : key_(key),
      form_(form),
      list_bytes_(list_bytes),
      message_bytes_(is_packed(form) ? whole_entry_bytes(list_bytes) : list_bytes),
      feature_bytes_(whole_entry_bytes(message_bytes_)),
      content_bytes_(key.size() + whole_entry_bytes(feature_bytes_)),
      entry_bytes_(whole_entry_bytes(content_bytes_)) {}

std::uint8_t* EntryHead::put(std::uint8_t* out) const noexcept {
  out = put_message_head(out, 1, content_bytes_);
  std::memcpy(out, key_.data(), key_.size());
  out = put_message_head(out + key_.size(), 2, feature_bytes_);
  out = put_message_head(out, static_cast<unsigned>(list_kind_of(form_)), message_bytes_);
  return is_packed(form_) ? put_message_head(out, 1, list_bytes_) : out;
}

}  // namespace tfrfast
