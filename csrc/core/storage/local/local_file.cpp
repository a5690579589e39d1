#include "core/storage/local/local_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/storage/fault_guard.h"
#include "core/storage/local/file_descriptor.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/pages_ahead.h"
#include "core/storage/local/remaining_pieces.h"
#include "core/storage/local/system_calls.h"

namespace tfrfast {
namespace {

constexpr std::size_t kMaxPieces = 1024;  // IOV_MAX on Linux and macOS

std::atomic<std::size_t> mappings{0};

// Maps a whole file. Null if the system or kMaxMappings allows no more mappings.
void* map_file(int descriptor, std::uint64_t bytes) noexcept {
  if (mappings.fetch_add(1, std::memory_order_relaxed) < kMaxMappings) {
    void* const mapping = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapping != MAP_FAILED) return mapping;
  }
  mappings.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

void unmap_file(void* mapping, std::uint64_t bytes) noexcept {
  ::munmap(mapping, bytes);
  mappings.fetch_sub(1, std::memory_order_relaxed);
}

// Files of /proc have a size of 0, and bytes.
void refuse_hidden_bytes(const FileDescriptor& file, const std::string& path) {
  char byte;
  if (::pread(file.number(), &byte, 1, 0) <= 0) return;
  if (examine_open_file(file.number(), path).facts.bytes > 0) return;  // it has just grown
  throw Error(ErrorKind::invalid,
              "'" + path +
                  "' has bytes, but its size is 0: the system makes its bytes when they are read. "
                  "Copy them to a file.",
              {path, {}, {}});
}

// Why ranges could not be read. Without an errno, the file ends there.
struct Failure {
  std::uint64_t at;
  int system_error;
};

// Adjacent ranges are read with one system call.
std::optional<Failure> read_ranges(int descriptor, std::span<const ReadRange> ranges) noexcept {
  std::array<iovec, kMaxPieces> pieces;
  while (!ranges.empty()) {
    std::uint64_t at = ranges.front().offset;
    std::uint64_t end = at;
    std::size_t count = 0;
    while (count < std::min(ranges.size(), pieces.size()) && ranges[count].offset == end) {
      pieces[count] = {ranges[count].out, ranges[count].bytes};
      end += ranges[count].bytes;
      ++count;
    }
    ranges = ranges.subspan(count);
    for (RemainingPieces left{pieces.data(), static_cast<int>(count)}; left.count() > 0;) {
      const ssize_t got = ::preadv(descriptor, left.first(), left.count(), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Failure{at, got < 0 ? errno : 0};
      at += static_cast<std::uint64_t>(got);
      left.advance(static_cast<std::size_t>(got));
    }
  }
  return {};
}

class MappedFile final : public LocalFile {
 public:
  MappedFile(const std::string& path, const std::string& absolute_path, const FileFacts& facts,
             void* mapping)
      : LocalFile(path, absolute_path, facts, static_cast<const std::uint8_t*>(mapping)),
        mapping_(mapping),
        ahead_(LocalFile::absolute_path(), facts.bytes) {}
  ~MappedFile() override {
    if (bytes() != 0) unmap_file(mapping_, bytes());
  }

  void read(std::span<const ReadRange> ranges) const override {
    for (const ReadRange& each : ranges) {
      if (each.offset > bytes() || each.bytes > bytes() - each.offset) throw_shrunk(bytes());
    }
    if (is_better_read()) {
      for (const ReadRange& each : ranges) {
        unread_.fetch_sub(static_cast<std::int64_t>(each.bytes), std::memory_order_relaxed);
      }
      // The mapping also works without a descriptor, and after the file was replaced.
      if (descriptor_if_possible() != nullptr) {
        try {
          return read_by_system(ranges);
        } catch (const Error& error) {
          if (error.kind() == ErrorKind::truncated) throw;
        }
      }
    }
    // The first touch of a cold page reads up to megabytes around the page, unless the page was
    // announced.
    for (const ReadRange& each : ranges) advise_mapping(mapping_, each.offset, each.bytes);
    const std::uint8_t* const source = mapping();
    const bool readable = run_guarded([=] {
      for (const ReadRange& each : ranges) {
        // An empty file has no mapping, and memcpy must not get a null pointer.
        if (each.bytes > 0) std::memcpy(each.out, source + each.offset, each.bytes);
      }
    });
    if (!readable) throw_mapping_fault(*this, ranges.front().offset);
  }

  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                         Reads reads) const noexcept override {
    if (reads == Reads::in_order) {
      unread_.fetch_add(static_cast<std::int64_t>(ranges.front().bytes), std::memory_order_relaxed);
      if (ahead_.take(ranges.front())) return nullptr;
    } else {
      unread_.store(0, std::memory_order_relaxed);
      ahead_.leave();
    }
    for (const FileRange& each : ranges) {
      if (each.offset >= bytes()) continue;
      advise_mapping(mapping_, each.offset, std::min(each.bytes, bytes() - each.offset));
    }
    return nullptr;
  }

  bool is_cached(std::uint64_t offset) const noexcept override {
    return !ahead_.is_running() && LocalFile::is_cached(offset);
  }

  bool is_better_read() const noexcept override {
    return unread_.load(std::memory_order_relaxed) > 0;
  }

 private:
  void* const mapping_;
  mutable PagesAhead ahead_;
  // The bytes that were announced in order, less the bytes that were read.
  mutable std::atomic<std::int64_t> unread_{0};
};

class PreadFile final : public LocalFile {
 public:
  // Puts the opened descriptor into the pool. While the pool keeps the descriptor, the file may be
  // renamed.
  PreadFile(const std::string& path, const std::string& absolute_path, const FileFacts& facts,
            const std::shared_ptr<const FileDescriptor>& opened)
      : LocalFile(path, absolute_path, facts) {
    SharedDescriptors::instance().acquire(this, [&opened] { return opened; });
  }

  void read(std::span<const ReadRange> ranges) const override { read_by_system(ranges); }

  std::unique_ptr<Announcement> announce(std::span<const FileRange> ranges,
                                         Reads) const noexcept override {
    // Only advice: the read itself will report the error.
    if (const auto file = descriptor_if_possible()) {
      for (const FileRange& each : ranges) advise_file(file->number(), each.offset, each.bytes);
    }
    return nullptr;
  }
};

}  // namespace

std::shared_ptr<const StoredFile> open_local_file(const std::string& path, IoMode mode,
                                                  const std::string& absolute) {
  install_fault_guard();
  const std::string& opened = absolute.empty() ? path : absolute;
  refuse_unless_regular(opened);  // before opening, because opening a pipe would wait for a writer
  const auto file = std::make_shared<const FileDescriptor>(opened);
  const std::string resolved = absolute.empty() ? absolute_path(path) : absolute;
  const LocalFacts found = examine_open_file(file->number(), path);
  const FileFacts& facts = found.facts;
  if (facts.bytes == 0) refuse_hidden_bytes(*file, path);
  if (mode == IoMode::automatic) mode = found.is_on_network ? IoMode::pread : IoMode::mapped;
  if (mode == IoMode::mapped) {
    void* const mapping = facts.bytes == 0 ? nullptr : map_file(file->number(), facts.bytes);
    if (mapping != nullptr || facts.bytes == 0) {
      return std::make_shared<MappedFile>(path, resolved, facts, mapping);
    }
  }
  return std::make_shared<PreadFile>(path, resolved, facts, file);
}

LocalFile::LocalFile(std::string path, std::string absolute_path, const FileFacts& facts,
                     const std::uint8_t* mapping)
    : StoredFile(std::move(path), facts, kLocalTraits, mapping),
      absolute_path_(std::move(absolute_path)) {}

LocalFile::~LocalFile() {
  SharedDescriptors::instance().forget(this);
}

FileFacts LocalFile::facts_now() const {
  return examine_local_file(absolute_path_);
}

bool LocalFile::is_still(const FileFacts& now) const noexcept {
  return now.bytes == facts().bytes && now.mtime_ns == facts().mtime_ns &&
         is_same_file(now, facts()) &&
         (!facts().version_lasts || ctime_ns_of(now) == ctime_ns_of(facts()));
}

bool LocalFile::await_settled() const noexcept {
  return tfrfast::await_settled(facts());
}

std::shared_ptr<const FileDescriptor> LocalFile::descriptor() const {
  return SharedDescriptors::instance().acquire(this, [this] {
    auto opened = std::make_shared<const FileDescriptor>(absolute_path_);
    const FileFacts now = examine_open_file(opened->number(), path(), facts().version_lasts);
    if (is_still(now)) return opened;
    const bool replaced = !is_same_file(now, facts());
    if (!replaced && now.bytes < facts().bytes) throw_shrunk(now.bytes);
    throw Error(ErrorKind::stale_index,
                "'" + path() + "' was " + (replaced ? "replaced by another file" : "changed") +
                    " while it was being read. Open a new reader to read the new contents.",
                {path(), {}, {}});
  });
}

std::shared_ptr<const FileDescriptor> LocalFile::descriptor_if_possible() const noexcept {
  try {
    return descriptor();
  } catch (const std::exception&) {
    return nullptr;
  }
}

void LocalFile::read_by_system(std::span<const ReadRange> ranges) const {
  for (;;) {
    const auto file = descriptor();
    const std::optional<Failure> failure = read_ranges(file->number(), ranges);
    if (file->is_open()) {
      if (!failure) return;
      if (failure->system_error == 0) throw_shrunk(failure->at);
      throw_system_error(failure->system_error,
                         "Reading byte " + std::to_string(failure->at) + " of", path());
    }
    // The program has closed the descriptor, and the bytes may come from another file.
    SharedDescriptors::instance().forget(this);
  }
}

std::uint64_t LocalFile::next_data(std::uint64_t offset) const noexcept {
  if (offset >= bytes()) return bytes();
  // The search moves the position, so it needs a descriptor of its own.
  const FileDescriptor file(::open(absolute_path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  try {
    if (!is_still(examine_open_file(file.number(), path(), facts().version_lasts))) return offset;
  } catch (const std::exception&) {
    return offset;  // the read itself will report the error
  }
  const std::uint64_t data = data_in_file(file.get(), offset);
  return file.is_open() ? std::min(data, bytes()) : offset;
}

std::uint64_t LocalFile::data_bytes() const noexcept {
  constexpr std::uint64_t kBlock = 512;
  // The filesystem may compress its files.
  constexpr std::uint64_t kMaxRatio = 16;
  struct stat status;
  if (::stat(absolute_path_.c_str(), &status) != 0 || status.st_blocks <= 0) return bytes();
  const auto blocks = static_cast<std::uint64_t>(status.st_blocks);
  return blocks > bytes() / (kBlock * kMaxRatio) ? bytes() : blocks * kBlock * kMaxRatio;
}

bool LocalFile::is_cached(std::uint64_t offset) const noexcept {
  if (offset >= bytes()) return true;
  const auto file = descriptor_if_possible();
  if (file == nullptr) return true;
  // A network filesystem cannot tell, and gains most from early requests. So a file that is not
  // mapped counts as not cached.
  return cached_in_file(file->get(), offset).value_or(mapping() != nullptr);
}

}  // namespace tfrfast
