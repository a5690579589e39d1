#include "core/storage/local/published_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "core/base/error.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/permissions.h"
#include "core/storage/local/system_calls.h"
#include "core/storage/local/temporary_name.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kMinReservedBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kFlushedPieceBytes = std::uint64_t{8} << 20;

int rename_to(const std::string& from, const std::string& to, Existing existing) {
  return existing == Existing::keep ? rename_to_free_name(from, to)
                                    : ::rename(from.c_str(), to.c_str());
}

std::string unchanged(const std::string& path) {
  return "Nothing was published: '" + path + "' is as it was before.";
}

}  // namespace

PublishedFile::PublishedFile(std::string path) : path_(std::move(path)) {
  const std::string folder = folder_of(path_);
  remove_abandoned(folder);
  file_ = FileDescriptor(open_unnamed(folder));
  if (file_.number() >= 0) return;
  temporary_path_ = temporary_name(folder);
  file_ = FileDescriptor(
      ::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file_.number() < 0) throw_system_error(errno, "Creating a file for", path_);
}

void PublishedFile::keep_temporary_in(std::string folder) {
  remove_abandoned(folder);
  temporary_folder_ = std::move(folder);
}

void PublishedFile::keep_permissions() {
  keeps_permissions_ = true;
  restrict_permissions(file_.number(), path());
}

PublishedFile::~PublishedFile() {
  file_.close();
  if (has_name() && !committed_ && home_.is_this_one()) ::unlink(temporary_path_.c_str());
}

void PublishedFile::append(std::span<const ByteView> pieces) {
  constexpr std::size_t kPiecesAtOnce = 16;
  std::array<iovec, kPiecesAtOnce> vectors;
  while (!pieces.empty()) {
    const std::size_t count = std::min(pieces.size(), vectors.size());
    std::uint64_t end = appended_bytes_;
    for (std::size_t i = 0; i < count; ++i) {
      vectors[i] = {const_cast<std::uint8_t*>(pieces[i].data()), pieces[i].size()};
      end += pieces[i].size();
    }
    open_again();
    if (end > reserved_bytes_) reserve(end);
    write_all({vectors.data(), static_cast<int>(count)});
    pieces = pieces.subspan(count);
    if (flushes_early_ && appended_bytes_ - flushing_bytes_ >= kFlushedPieceBytes) {
      start_flushing();
    }
  }
}

void PublishedFile::reserve(std::uint64_t end) noexcept {
  const std::uint64_t piece = std::min(max_reserved_bytes_, appended_bytes_);
  if (piece < kMinReservedBytes || end - appended_bytes_ > piece) return;
  if (reserve_space(file_.number(), appended_bytes_, piece)) {
    reserved_bytes_ = appended_bytes_ + piece;
  } else {
    max_reserved_bytes_ = 0;  // the filesystem cannot reserve space, or has little space left
  }
}

void PublishedFile::start_flushing() noexcept {
  // Only a hint. A failure repeats, and is reported, when the whole file is flushed.
  tfrfast::start_flushing(file_.number(), flushing_bytes_, appended_bytes_ - flushing_bytes_);
  flushing_bytes_ = appended_bytes_;
}

void PublishedFile::give_back_space() noexcept {
  if (reserved_bytes_ <= appended_bytes_) return;
  if (::ftruncate(file_.number(), static_cast<off_t>(appended_bytes_)) == 0) reserved_bytes_ = 0;
}

void PublishedFile::write_all(RemainingPieces pieces) {
  while (pieces.count() > 0) {
    const ssize_t written = ::pwritev(file_.number(), pieces.first(), pieces.count(),
                                      static_cast<off_t>(appended_bytes_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_system_error(errno, "Writing", path(), unchanged(path()));
    appended_bytes_ += static_cast<std::uint64_t>(written);
    pieces.advance(static_cast<std::size_t>(written));
  }
}

bool PublishedFile::set_back(std::int64_t* modified_ns) {
  open_again();
  give_back_space();
  const auto examine = [this] {
    struct stat status;
    if (::fstat(file_.number(), &status) != 0) throw_system_error(errno, "Examining", path());
#if defined(__APPLE__)
    return status.st_mtimespec;
#else
    return status.st_mtim;
#endif
  };
  const timespec written = examine();
  timespec earlier = written;
  if (earlier.tv_nsec > 0) {
    earlier.tv_nsec -= 1;
  } else {
    earlier.tv_sec -= 1, earlier.tv_nsec = 999'999'999;
  }
  const timespec times[2] = {{0, UTIME_OMIT}, earlier};
  const bool was_set = ::futimens(file_.number(), times) == 0;
  const timespec kept = was_set ? examine() : written;
  *modified_ns = std::int64_t{kept.tv_sec} * 1'000'000'000 + kept.tv_nsec;
  return kept.tv_sec < written.tv_sec ||
         (kept.tv_sec == written.tv_sec && kept.tv_nsec < written.tv_nsec);
}

void PublishedFile::flush() {
  open_again();
  give_back_space();
  if (::fsync(file_.number()) != 0)
    throw_system_error(errno, "Flushing", path(), unchanged(path()));
}

void PublishedFile::park() {
  home_.refuse_in_child(path());
  if (file_.number() < 0) return;
  open_again();
  if (!has_name()) take_temporary_name();
  const int failed = file_.close();
  if (failed != 0) throw_system_error(failed, "Closing", path(), unchanged(path()));
}

void PublishedFile::take_temporary_name() {
  for (const std::string& folder : {temporary_folder_, folder_of(path())}) {
    if (folder.empty()) continue;
    std::string name = temporary_name(folder);
    if (give_name(file_.number(), name) == 0) {
      temporary_path_ = std::move(name);
      return;
    }
  }
  throw_system_error(errno, "Naming a file for", path());
}

void PublishedFile::open_again() {
  home_.refuse_in_child(path());
  if (file_.number() < 0) {
    file_ = FileDescriptor(::open(temporary_path_.c_str(), O_WRONLY | O_CLOEXEC));
    if (file_.number() >= 0) return;
    throw_system_error(errno, "Opening a file for", path(), unchanged(path()));
  }
  if (file_.is_open()) return;
  throw Error(ErrorKind::closed,
              "This program closed the descriptor of the file that was to become '" + path() +
                  "', as os.closerange() does. " + unchanged(path()),
              {path(), {}, {}});
}

void PublishedFile::take_name(Existing existing) {
  if (!has_name()) {
    if (give_name(file_.number(), path()) == 0) return;
    if (errno == ENOENT) {
      // The folder was removed because it seemed empty: a file without a name does not show.
      make_folders(folder_of(path()));
      if (give_name(file_.number(), path()) == 0) return;
    }
    if (errno != EEXIST || existing == Existing::keep) {
      throw_system_error(errno, "Publishing", path(), unchanged(path()));
    }
  }
  park();  // a network filesystem may report only on close that it could not store the bytes
  if (rename_to(temporary_path_, path(), existing) != 0) {
    throw_system_error(errno, "Publishing", path(), unchanged(path()));
  }
}

void PublishedFile::commit(bool durable, Existing existing) {
  home_.refuse_in_child(path());
  if (file_.number() >= 0) open_again();
  if (keeps_permissions_ && ::access(path().c_str(), F_OK) == 0) {
    open_again();
    take_permissions(file_.number(), path());
  }
  if (!others_may_write_) {
    open_again();
    take_write_permission_from_others(file_.number());
  }
  if (file_.number() >= 0) give_back_space();
  if (durable) flush();
  take_name(existing);
  committed_ = true;
  file_.close();
  if (durable) flush_folder(folder_of(path()));
}

void move_file(const std::string& from, const std::string& to, Existing existing) {
  if (existing == Existing::replace) {
    const FileDescriptor moved(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (moved.number() >= 0) take_permissions(moved.number(), to);
  }
  if (rename_to(from, to, existing) != 0) {
    throw_system_error(errno, "Publishing", to, unchanged(to));
  }
}

}  // namespace tfrfast
