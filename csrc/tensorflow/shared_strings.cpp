#include "tensorflow/shared_strings.h"

namespace tfrfast::tensorflow {
namespace {

std::atomic<bool> hands_out{false};

}  // namespace

bool hands_out_views() noexcept {
  return hands_out.load(std::memory_order_relaxed);
}
void hand_out_views(bool yes) noexcept {
  hands_out.store(yes, std::memory_order_relaxed);
}

MemoryOwner::MemoryOwner(std::shared_ptr<const void> memory, std::size_t references)
    : StringOwner{&add_reference, &drop_reference, this},
      memory_(std::move(memory)),
      references_(references) {}

void MemoryOwner::add_reference(StringOwner* self) {
  static_cast<MemoryOwner*>(self->object)->references_.fetch_add(1, std::memory_order_relaxed);
}

bool MemoryOwner::drop_reference(StringOwner* self) {
  auto* owner = static_cast<MemoryOwner*>(self->object);
  if (owner->references_.fetch_sub(1, std::memory_order_acq_rel) > 1) return false;
  delete owner;
  return true;
}

}  // namespace tfrfast::tensorflow
