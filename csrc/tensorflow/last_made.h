// Keeps objects that a kernel makes from its inputs, for the next call.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/base/encoding.h"

namespace tfrfast::tensorflow {

// Keeps the last object made from some text or numbers. Safe from many threads.
template <class Made>
class LastMade {
 public:
  // `is_it(made)` says whether the last object fits. If not, `make()` makes another.
  template <class IsIt, class Make>
  std::shared_ptr<const Made> get(const IsIt& is_it, const Make& make) {
    const std::lock_guard lock(mutex_);
    if (last_ == nullptr || !is_it(*last_)) last_ = std::make_shared<const Made>(make());
    return last_;
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<const Made> last_;
};

// Keeps the last decoded description. Safe from many threads.
template <class Description>
class LastDecoded {
 public:
  // Throws Error(invalid).
  std::shared_ptr<const Description> get(std::string_view encoded) {
    const std::shared_ptr<const Decoded> last = last_.get(
        [encoded](const Decoded& made) { return made.head == head_of(encoded); },
        [encoded] { return Decoded{std::string(head_of(encoded)), Description::decode(encoded)}; });
    return {last, &last->description};
  }

 private:
  struct Decoded {
    std::string head;
    Description description;
  };
  LastMade<Decoded> last_;
};

}  // namespace tfrfast::tensorflow
