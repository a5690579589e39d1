#include "core/storage/stored_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/base/error.h"
#include "core/storage/fault_guard.h"
#include "core/storage/file_descriptor.h"

namespace tfrfast {
namespace {

// The kernel serves at most a read-ahead window of what one call announces.
constexpr std::uint64_t kAdviceBytes = 128 << 10;
// More would push out what was announced first, and what a header claims may have no end.
constexpr std::uint64_t kMostAdvisedBytes = std::uint64_t{1} << 30;

class MappedFile final : public StoredFile {
 public:
  MappedFile(const std::string& path, const FileIdentity& identity, bool identity_lasts,
             void* mapping)
      : StoredFile(path, identity, identity_lasts, static_cast<const std::uint8_t*>(mapping)),
        mapping_(mapping) {}
  ~MappedFile() override {
    if (bytes() != 0) ::munmap(mapping_, bytes());
  }

  void read(std::uint64_t offset, iovec* pieces, int count) const override {
    std::uint64_t at = offset;
    for (int i = 0; i < count; ++i) {
      if (at > bytes() || pieces[i].iov_len > bytes() - at) throw_shrunk(bytes());
      at += pieces[i].iov_len;
    }
    if (at == offset) return;  // an empty shard has no mapping to copy nothing from
    const std::uint8_t* source = mapping() + offset;
    const bool readable = run_guarded([=] {
      const std::uint8_t* from = source;
      for (int i = 0; i < count; ++i) {
        std::memcpy(pieces[i].iov_base, from, pieces[i].iov_len);
        from += pieces[i].iov_len;
      }
    });
    if (!readable) throw_mapping_fault(*this, offset);
  }

  void will_need(std::uint64_t offset, std::uint64_t byte_count) const noexcept override {
    constexpr std::uint64_t kPage = 4096;
    if (offset >= bytes()) return;
    const std::uint64_t end = offset + std::min({byte_count, bytes() - offset, kMostAdvisedBytes});
    for (std::uint64_t begin = offset / kPage * kPage; begin < end; begin += kAdviceBytes) {
      ::madvise(static_cast<std::uint8_t*>(mapping_) + begin, std::min(kAdviceBytes, end - begin),
                MADV_WILLNEED);
    }
  }

 private:
  void* mapping_;
};

class PreadFile final : public StoredFile {
 public:
  // Begins with the descriptor that the file was opened by: as long as that stays in the pool, what
  // happens to the name does not matter.
  PreadFile(const std::string& path, const FileIdentity& identity, bool identity_lasts,
            const std::shared_ptr<const FileDescriptor>& opened)
      : StoredFile(path, identity, identity_lasts, nullptr) {
    SharedDescriptors::instance().acquire(this, [&opened] { return opened; });
  }

  void read(std::uint64_t offset, iovec* pieces, int count) const override {
    const std::shared_ptr<const FileDescriptor> file = descriptor();
    std::uint64_t at = offset;
    while (count > 0) {
      if (pieces->iov_len == 0) {
        ++pieces, --count;
        continue;
      }
      const ssize_t got =
          ::preadv(file->get(), pieces, std::min(count, kMostPieces), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        throw_system_error(errno, "Reading byte " + std::to_string(at) + " of", path());
      }
      if (got == 0) throw_shrunk(at);
      at += static_cast<std::uint64_t>(got);
      for (auto left = static_cast<std::size_t>(got); left > 0;) {
        const std::size_t used = std::min(left, pieces->iov_len);
        pieces->iov_base = static_cast<std::uint8_t*>(pieces->iov_base) + used;
        pieces->iov_len -= used;
        left -= used;
        if (pieces->iov_len == 0) ++pieces, --count;
      }
    }
  }

  void will_need(std::uint64_t offset, std::uint64_t byte_count) const noexcept override {
#if defined(POSIX_FADV_WILLNEED)
    byte_count = std::min(byte_count, kMostAdvisedBytes);
    try {
      const std::shared_ptr<const FileDescriptor> file = descriptor();
      for (std::uint64_t done = 0; done < byte_count; done += kAdviceBytes) {
        ::posix_fadvise(file->get(), static_cast<off_t>(offset + done),
                        static_cast<off_t>(std::min(kAdviceBytes, byte_count - done)),
                        POSIX_FADV_WILLNEED);
      }
    } catch (const std::exception&) {
      // Advice only: whoever reads gets the error.
    }
#else
    (void)offset, (void)byte_count;
#endif
  }

 private:
  static constexpr int kMostPieces = 1024;  // IOV_MAX on Linux and macOS
};

}  // namespace

std::shared_ptr<const StoredFile> StoredFile::open(const std::string& path, IoMode mode) {
  install_fault_guard();
  identify_file(path);  // before opening: a pipe would wait for its writer
  const auto file = std::make_shared<const FileDescriptor>(path);
  const FileIdentity identity = identify_open_file(file->get(), path);
  const Filesystem filesystem = filesystem_of(file->get());
  if (mode == IoMode::automatic) mode = filesystem.is_remote ? IoMode::pread : IoMode::mapped;
  if (mode == IoMode::mapped) {
    void* const mapping = identity.bytes == 0 ? nullptr
                                              : ::mmap(nullptr, identity.bytes, PROT_READ,
                                                       MAP_SHARED, file->get(), 0);
    if (mapping != MAP_FAILED) {
      return std::make_shared<MappedFile>(path, identity, filesystem.identity_lasts, mapping);
    }
  }
  return std::make_shared<PreadFile>(path, identity, filesystem.identity_lasts, file);
}

StoredFile::~StoredFile() {
  SharedDescriptors::instance().forget(this);
}

std::shared_ptr<const FileDescriptor> StoredFile::descriptor() const {
  return SharedDescriptors::instance().acquire(this, [this] {
    auto opened = std::make_shared<const FileDescriptor>(absolute_path());
    const FileIdentity now = identify_open_file(opened->get(), path());
    if (is_still(now)) return opened;
    const bool replaced = now.device != identity().device || now.inode != identity().inode;
    if (!replaced && now.bytes < identity().bytes) throw_shrunk(now.bytes);
    throw Error(ErrorKind::stale_index,
                "'" + path() + "' was " + (replaced ? "replaced by another file" : "changed") +
                    " while it was being read. Open a new reader to read what it holds now.",
                {path(), {}, {}});
  });
}

std::uint64_t StoredFile::next_data(std::uint64_t offset) const noexcept {
  if (offset >= bytes()) return bytes();
#if defined(SEEK_DATA)
  try {
    // Nobody reads where the descriptor stands.
    const off_t data = ::lseek(descriptor()->get(), static_cast<off_t>(offset), SEEK_DATA);
    if (data < 0) return errno == ENXIO ? bytes() : offset;
    return std::min(static_cast<std::uint64_t>(data), bytes());
  } catch (const std::exception&) {
    // Whoever reads gets the error.
  }
#endif
  return offset;
}

std::uint64_t StoredFile::data_bytes() const noexcept {
  constexpr std::uint64_t kBlock = 512;
  // Filesystems may compress what they hold.
  constexpr std::uint64_t kMostRatio = 16;
  struct stat status;
  if (::stat(absolute_path_.c_str(), &status) != 0 || status.st_blocks <= 0) return bytes();
  const auto blocks = static_cast<std::uint64_t>(status.st_blocks);
  return blocks > bytes() / (kBlock * kMostRatio) ? bytes() : blocks * kBlock * kMostRatio;
}

bool StoredFile::is_cached(std::uint64_t offset) const noexcept {
#if defined(RWF_NOWAIT)
  if (offset >= bytes()) return true;
  try {
    std::uint8_t byte;
    const iovec piece{&byte, 1};
    if (::preadv2(descriptor()->get(), &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT) >= 0) {
      return true;
    }
    // Network filesystems cannot tell, and gain most from being asked early.
    return errno != EAGAIN && mapping_ != nullptr;
  } catch (const std::exception&) {
    return true;
  }
#else
  (void)offset;
  return true;
#endif
}

bool StoredFile::is_still(const FileIdentity& now) const noexcept {
  return now.device == identity_.device && now.inode == identity_.inode &&
         now.bytes == identity_.bytes && now.mtime_ns == identity_.mtime_ns &&
         (!identity_lasts_ || now.ctime_ns == identity_.ctime_ns);
}

StoredFile::StoredFile(std::string path, const FileIdentity& identity, bool identity_lasts,
                       const std::uint8_t* mapping)
    : path_(std::move(path)),
      identity_(identity),
      identity_lasts_(identity_lasts),
      mapping_(mapping) {
  std::error_code unknown_folder;
  absolute_path_ = std::filesystem::absolute(path_, unknown_folder).string();
  if (unknown_folder) absolute_path_ = path_;
}

std::string StoredFile::describe_byte(std::uint64_t offset) const {
  return "byte " + std::to_string(offset);
}

void StoredFile::read(std::uint64_t offset, std::uint8_t* out, std::size_t byte_count) const {
  iovec piece{out, byte_count};
  read(offset, &piece, 1);
}

void StoredFile::throw_shrunk(std::uint64_t offset) const {
  throw Error(ErrorKind::truncated,
              "'" + path_ + "' ends at or before byte " + std::to_string(offset) + ", but had " +
                  std::to_string(bytes()) +
                  " bytes when it was opened: it was truncated meanwhile. Restore it and open a "
                  "new reader.",
              {path_, {}, static_cast<std::int64_t>(offset)});
}

void throw_mapping_fault(const StoredFile& file, std::uint64_t offset) {
  std::optional<std::uint64_t> bytes_now;
  try {
    bytes_now = file.identify_now().bytes;
  } catch (const Error&) {
    // Gone, or out of reach.
  }
  if (bytes_now && *bytes_now < file.identity().bytes) {
    throw Error(ErrorKind::truncated,
                "'" + file.path() + "' has " + std::to_string(*bytes_now) + " bytes now, but had " +
                    std::to_string(file.bytes()) +
                    " when it was opened: it was truncated while byte " + std::to_string(offset) +
                    " and those after it were being read. Restore it and open a new reader.",
                {file.path(), {}, static_cast<std::int64_t>(offset)});
  }
  throw Error(ErrorKind::io,
              "Reading '" + file.path() + "' at byte " + std::to_string(offset) +
                  " failed under its memory mapping: the disk or the network did not deliver. "
                  "Reading with io=\"pread\" tells the exact error.",
              {file.path(), {}, static_cast<std::int64_t>(offset)}, EIO);
}

}  // namespace tfrfast
