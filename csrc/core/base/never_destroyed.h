// A static that threads may use until the process ends. It takes no memory, so it cannot fail.
#pragma once

#include <new>

namespace tfrfast {

template <typename Value>
class NeverDestroyed {
 public:
  NeverDestroyed() : value_(*new(bytes_) Value()) {}
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  const Value& value() const noexcept { return value_; }

 private:
  alignas(Value) unsigned char bytes_[sizeof(Value)];
  const Value& value_;
};

}  // namespace tfrfast
