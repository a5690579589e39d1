// Objects on their way to a network. A writer's bytes lie on the local disk in parts. A sender
// sends and removes each part while the writer goes on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/storage/publication.h"

namespace tfrfast {

struct OutgoingPart {
  std::string object;  // the local path under which the whole object would be published
  std::uint64_t number = 0;
  std::string path;  // the part's file; empty if the part has no bytes
  bool is_last = false;
};

// A queue of complete parts. Writers wait while the queue is full, so the disk needs space for the
// queue and for one part per object being written. Safe from many threads. Writers and senders
// share the queue.
class OutgoingParts : public std::enable_shared_from_this<OutgoingParts> {
 public:
  // A part has exactly `part_bytes`, except the last part of its object.
  OutgoingParts(std::uint64_t part_bytes, std::uint64_t max_parts_of_object,
                std::size_t max_waiting_parts);
  ~OutgoingParts();

  // Makes an object that consists of parts and has no other file. If there is a single part, it
  // gets the object's path. Otherwise the parts lie beside that path. An append() waits for space
  // if the thread can be interrupted. commit() completes the last part.
  std::unique_ptr<Publication> publish(const std::string& path);

  // Waits at most `max_wait_ms` for the next complete part. An object's parts come in order.
  std::optional<OutgoingPart> take(int max_wait_ms);

  // Call if nothing more will be sent. From now on, writing throws Error io, in waiting threads
  // too.
  void fail(const std::string& message, int system_error);

 private:
  class Object;
  void add(OutgoingPart part);
  void await_space();
  void refuse_after_failure(const std::string& path) const;  // call with the lock held

  const std::uint64_t part_bytes_;
  const std::uint64_t max_parts_;
  const std::size_t max_waiting_;
  const HomeProcess home_;
  mutable std::mutex mutex_;
  // Never destroyed in a forked child, where threads seem to wait for the condition.
  std::condition_variable* const changed_;
  std::deque<OutgoingPart> waiting_;
  std::string failure_;
  int system_error_ = 0;
};

}  // namespace tfrfast
