// A core writer that many Python threads share.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/process.h"
#include "python/payload.h"
#include "python/without_gil.h"

namespace tfrfast::python {

namespace py = pybind11;

inline constexpr const char* kWriterIsClosed = "This writer has been closed.";

// No thread waits for the mutex while holding the GIL. In a forked child, a thread that does not
// exist there may hold the mutex forever. So the child never waits for the mutex: forget() and the
// destructor work, and calls that write throw Error closed at once.
template <class Core>
class SharedWriter {
 public:
  // `name` names the written file or files in messages.
  SharedWriter(std::unique_ptr<Core> core, std::string name)
      : name_(std::move(name)), core_(std::move(core)) {}
  ~SharedWriter() {
    forget([](const Core&) {});
  }
  SharedWriter(const SharedWriter&) = delete;
  SharedWriter& operator=(const SharedWriter&) = delete;

  // Writes one record.
  void write(py::handle record) {
    const Payload payload(record);
    if (home_.is_this_one()) {
      // Most records only go into the buffer, which is faster than releasing and taking the GIL.
      const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
      if (lock.owns_lock() && core_ != nullptr && core_->has_space(payload.bytes().size())) {
        core_->write(payload.bytes());
        return;
      }
    }
    use([&payload](Core& core) { core.write(payload.bytes()); });
  }

  // Calls work(core) without the GIL, and returns its result. Throws Error closed if the writer is
  // closed.
  template <class Work>
  auto use(const Work& work) {
    const WithoutGil without_gil;
    return use_without_gil(work);
  }
  // The same, for a caller that has released the GIL.
  template <class Work>
  auto use_without_gil(const Work& work) {
    const auto lock = hold();
    if (core_ == nullptr) throw Error(ErrorKind::closed, kWriterIsClosed);
    return work(*core_);
  }

  // Calls work(core) without the GIL, then closes the writer. Does nothing if it is closed.
  template <class Work>
  void finish(const Work& work) {
    const WithoutGil without_gil;
    const auto lock = hold();
    if (const std::unique_ptr<Core> last = std::move(core_); last != nullptr) work(*last);
  }

  // Closes the writer without finishing anything, also in a forked child. Calls remember(core) if
  // the writer's state is consistent.
  template <class Remember>
  void forget(const Remember& remember) {
    const auto lock = hold_if_possible();
    if (lock.owns_lock()) {
      if (const std::unique_ptr<Core> last = std::move(core_); last != nullptr) remember(*last);
    } else {
      // A thread that does not exist here may have left the writer half changed: leak the writer.
      (void)core_.release();
    }
  }

  // Returns ask(core), where `core` is null if the writer is closed. A forked child may ask unless
  // another thread held the mutex at the fork. Then ask() throws Error closed.
  template <class Ask>
  auto ask(const Ask& ask) {
    const WithoutGil without_gil;
    const auto lock = hold_if_possible();
    if (!lock.owns_lock()) home_.refuse_in_child(name_);
    return ask(core_.get());
  }

  bool is_of_this_process() const noexcept { return home_.is_this_one(); }
  bool closed() {
    const WithoutGil without_gil;
    const auto lock = hold_if_possible();
    return core_ == nullptr;
  }

 private:
  std::unique_lock<std::mutex> hold() {
    auto lock = hold_if_possible();
    if (core_ != nullptr) home_.refuse_in_child(name_);
    return lock;
  }
  std::unique_lock<std::mutex> hold_if_possible() {
    if (home_.is_this_one()) return std::unique_lock<std::mutex>(mutex_);
    return std::unique_lock<std::mutex>(mutex_, std::try_to_lock);
  }

  const HomeProcess home_;
  const std::string name_;
  std::mutex mutex_;
  std::unique_ptr<Core> core_;
};

}  // namespace tfrfast::python
