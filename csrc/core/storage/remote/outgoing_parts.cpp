#include "core/storage/remote/outgoing_parts.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "core/base/waiting.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/growing_file.h"
#include "core/storage/local/published_file.h"

namespace tfrfast {
namespace {

constexpr std::chrono::milliseconds kBetweenSpaceChecks{100};

}  // namespace

class OutgoingParts::Object final : public Publication {
 public:
  Object(std::string path, std::shared_ptr<OutgoingParts> parts)
      : Publication(std::move(path)), parts_(std::move(parts)) {}
  ~Object() override {
    if (!file_path_.empty() && home_.is_this_one()) remove_file(file_path_);
  }

  using Publication::append;
  void append(std::span<const ByteView> pieces) override {
    home_.refuse_in_child(path());
    for (ByteView piece : pieces) {
      while (!piece.empty()) {
        if (used_bytes_ == parts_->part_bytes_) finish_part(false);
        const auto count = static_cast<std::size_t>(
            std::min<std::uint64_t>(piece.size(), parts_->part_bytes_ - used_bytes_));
        open_part();
        file_->append(piece.first(count));
        used_bytes_ += count;
        piece = piece.subspan(count);
      }
    }
  }

  void park() override { file_.reset(); }

  // Durability is the sender's task.
  void commit(bool, Existing) override {
    home_.refuse_in_child(path());
    if (number_ > 0) return finish_part(true);
    open_part();  // even if empty
    file_->close();
    file_.reset();
    move_file(file_path_, path(), Existing::replace);
    file_path_.clear();
    parts_->add({path(), 0, path(), true});
  }

 private:
  void open_part() {
    if (file_path_.empty()) {
      if (number_ >= parts_->max_parts_) {
        throw_system_error(EFBIG, "Writing", path(),
                           "An object has at most " + std::to_string(parts_->max_parts_) +
                               " parts of " + std::to_string(parts_->part_bytes_) +
                               " bytes. Write more shards.");
      }
      std::string name = path() + ".part-" + std::to_string(number_);
      file_.emplace(name, GrowingFile::Begin::empty);
      file_path_ = std::move(name);
    } else if (!file_) {
      file_.emplace(file_path_, GrowingFile::Begin::at_end);
    }
  }

  void finish_part(bool is_last) {
    if (file_) file_->close();
    file_.reset();
    if (!is_last) parts_->await_space();
    parts_->add({path(), number_++, file_path_, is_last});
    file_path_.clear();
    used_bytes_ = 0;
  }

  const std::shared_ptr<OutgoingParts> parts_;
  const HomeProcess home_;
  std::string file_path_;  // file of the part being written; empty if the part has no bytes
  std::optional<GrowingFile> file_;
  std::uint64_t number_ = 0;
  std::uint64_t used_bytes_ = 0;
};

OutgoingParts::OutgoingParts(std::uint64_t part_bytes, std::uint64_t max_parts_of_object,
                             std::size_t max_waiting_parts)
    : part_bytes_(part_bytes),
      max_parts_(max_parts_of_object),
      max_waiting_(max_waiting_parts),
      changed_(new std::condition_variable) {
  if (part_bytes == 0 || max_parts_of_object == 0 || max_waiting_parts == 0) {
    throw Error(ErrorKind::invalid, "The size and the numbers of parts must be above 0.");
  }
}

OutgoingParts::~OutgoingParts() {
  if (home_.is_this_one()) delete changed_;
}

std::unique_ptr<Publication> OutgoingParts::publish(const std::string& path) {
  return std::make_unique<Object>(path, shared_from_this());
}

std::optional<OutgoingPart> OutgoingParts::take(int max_wait_ms) {
  std::unique_lock lock(mutex_);
  changed_->wait_for(lock, std::chrono::milliseconds(max_wait_ms),
                     [this] { return !waiting_.empty(); });
  if (waiting_.empty()) return {};
  OutgoingPart part = std::move(waiting_.front());
  waiting_.pop_front();
  lock.unlock();
  changed_->notify_all();
  return part;
}

void OutgoingParts::fail(const std::string& message, int system_error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) {
      failure_ = message;
      system_error_ = system_error;
    }
  }
  changed_->notify_all();
}

void OutgoingParts::add(OutgoingPart part) {
  {
    const std::lock_guard lock(mutex_);
    refuse_after_failure(part.object);
    waiting_.push_back(std::move(part));
  }
  changed_->notify_all();
}

// A thread whose wait nothing can interrupt does not wait. Such threads complete shards, and add at
// most a part per shard.
void OutgoingParts::await_space() {
  WaitCheck* const check = wait_check();
  std::unique_lock lock(mutex_);
  while (check != nullptr && failure_.empty() && waiting_.size() >= max_waiting_) {
    changed_->wait_for(lock, kBetweenSpaceChecks);
    lock.unlock();
    check->check();
    lock.lock();
  }
}

void OutgoingParts::refuse_after_failure(const std::string& path) const {
  if (!failure_.empty()) throw Error(ErrorKind::io, failure_, {path, {}, {}}, system_error_);
}

}  // namespace tfrfast
