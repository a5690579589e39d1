// Objects on their way to a network: what a writer appends lies on the disk of this machine in
// parts, each of which somebody else sends and removes while the writer goes on.
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
  std::string object;  // the path under which the whole object would be published here
  std::uint64_t number = 0;
  std::string path;  // the file that holds it; empty if it has no bytes
  bool is_last = false;
};

// A queue of complete parts. Writers wait while it is full, so the disk needs space for the queue
// and for one part of each object that is being written. Safe from many threads; shared by those
// who write and those who send.
class OutgoingParts : public std::enable_shared_from_this<OutgoingParts> {
 public:
  // A part has exactly `part_bytes`, but for the last one of its object.
  OutgoingParts(std::uint64_t part_bytes, std::uint64_t max_parts_of_object,
                std::size_t max_waiting_parts);
  ~OutgoingParts();

  // An object that consists of parts. It has no other file: an object of one part has its path once
  // that is complete, and further parts lie beside it. Every append() that needs space waits,
  // unless nobody could interrupt the thread. commit() completes the last part.
  std::unique_ptr<Publication> publish(const std::string& path);

  // The next complete part, in the order of each object. Waits for one, but no longer than that.
  std::optional<OutgoingPart> take(int max_wait_ms);

  // Nothing more will be sent: from now on, and for those who wait, writing is Error io.
  void fail(const std::string& message, int system_error);

 private:
  class Object;
  void add(OutgoingPart part);
  void await_space();
  void refuse_after_failure(const std::string& path) const;  // call it with the lock held

  const std::uint64_t part_bytes_;
  const std::uint64_t max_parts_;
  const std::size_t max_waiting_;
  const HomeProcess home_;
  mutable std::mutex mutex_;
  // Never destroyed in a forked child, where threads seem to wait for it.
  std::condition_variable* const changed_;
  std::deque<OutgoingPart> waiting_;
  std::string failure_;
  int system_error_ = 0;
};

}  // namespace tfrfast
