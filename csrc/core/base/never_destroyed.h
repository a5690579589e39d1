// A static that threads may use until the process ends. It takes no memory, so it cannot fail.
#pragma once

namespace tfrfast {

template <typename Value>
union NeverDestroyed {
  NeverDestroyed() : value() {}
  ~NeverDestroyed() {}

  Value value;
};

}  // namespace tfrfast
