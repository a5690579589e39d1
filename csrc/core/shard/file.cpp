#include "core/shard/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/vfs.h>
#else
#include <sys/mount.h>
#include <sys/param.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "core/base/error.h"
#include "core/base/pool.h"
#include "core/shard/fault_guard.h"
#include "core/shard/file_descriptor.h"

namespace tfrfast {
namespace {

FileIdentity identity_from(const struct stat& status, const std::string& path) {
  if (S_ISDIR(status.st_mode)) {
    throw_system_error(EISDIR, "Opening", path, "Name the shards in it, with a glob for example.");
  }
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::invalid,
                "'" + path +
                    "' is not a regular file. A shard is read at random, which pipes and "
                    "devices do not allow: copy it to a file.",
                {path, {}, {}});
  }
#if defined(__APPLE__)
  const auto& mtime = status.st_mtimespec;
#else
  const auto& mtime = status.st_mtim;
#endif
  return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino),
          static_cast<std::uint64_t>(status.st_size),
          static_cast<std::int64_t>(mtime.tv_sec) * 1'000'000'000 + mtime.tv_nsec};
}

FileIdentity identity_of(int descriptor, const std::string& path) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) throw_system_error(errno, "Inspecting", path);
  return identity_from(status, path);
}

// Faults of a mapping on these arrive late, or as a hang: read them explicitly.
bool is_remote(int descriptor) {
  struct statfs filesystem;
  if (::fstatfs(descriptor, &filesystem) != 0) return false;
#if defined(__linux__)
  switch (static_cast<std::uint32_t>(filesystem.f_type)) {
    case 0x6969:      // NFS
    case 0x65735546:  // FUSE
    case 0xff534d42:  // CIFS
    case 0xfe534d42:  // SMB2
    case 0x517b:      // SMB
    case 0x01021997:  // 9P
    case 0x00c36400:  // Ceph
    case 0x0bd00bd0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x5346414f:  // AFS
    case 0x19830326:  // BeeGFS
      return true;
    default:
      return false;
  }
#else
  return (filesystem.f_flags & MNT_LOCAL) == 0;
#endif
}

// The kernel serves at most a read-ahead window of what one call announces.
constexpr std::uint64_t kAdviceBytes = 128 << 10;

class MappedFile final : public ShardFile {
 public:
  MappedFile(const std::string& path, const FileIdentity& identity, void* mapping)
      : ShardFile(path, identity, static_cast<const std::uint8_t*>(mapping)), mapping_(mapping) {}
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
    const std::uint64_t end = offset + std::min(byte_count, bytes() - offset);
    for (std::uint64_t begin = offset / kPage * kPage; begin < end; begin += kAdviceBytes) {
      ::madvise(static_cast<std::uint8_t*>(mapping_) + begin, std::min(kAdviceBytes, end - begin),
                MADV_WILLNEED);
    }
  }

 private:
  void* mapping_;
};

class PreadFile final : public ShardFile {
 public:
  PreadFile(const std::string& path, const FileIdentity& identity)
      : ShardFile(path, identity, nullptr) {}

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

class MappedWalker final : public ShardWalker {
 public:
  using ShardWalker::ShardWalker;
  ShardWindow window(std::uint64_t, std::size_t) override {
    return {file().mapping(), 0, file().bytes(), file().bytes()};
  }
};

class PreadWalker final : public ShardWalker {
 public:
  using ShardWalker::ShardWalker;
  ShardWindow window(std::uint64_t offset, std::size_t wanted) override {
    offset = std::min(offset, file().bytes());
    const std::uint64_t end = offset + std::min<std::uint64_t>(wanted, file().bytes() - offset);
    if (offset < window_.begin || end > window_.end || window_.bytes == nullptr)
      fill(offset, wanted);
    return window_;
  }

 private:
  void fill(std::uint64_t offset, std::size_t wanted) {
    const std::size_t size = std::max(wanted, read_ahead_bytes());
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, file().bytes() - offset));
    if (buffer_.capacity() < size) buffer_ = PooledBuffer(size);
    file().read(offset, buffer_.data(), count);
    window_ = {buffer_.data(), offset, offset + count, file().bytes()};
  }

  PooledBuffer buffer_;
  ShardWindow window_;
};

}  // namespace

FileIdentity identify_file(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) throw_system_error(errno, "Opening", path);
  return identity_from(status, path);
}

std::shared_ptr<const ShardFile> ShardFile::open(const std::string& path, IoMode mode) {
  install_fault_guard();
  identify_file(path);  // before opening: a pipe would wait for its writer
  const FileDescriptor file(path);
  const FileIdentity identity = identity_of(file.get(), path);
  if (mode == IoMode::automatic) mode = is_remote(file.get()) ? IoMode::pread : IoMode::mapped;
  if (mode == IoMode::mapped) {
    if (identity.bytes == 0) return std::make_shared<MappedFile>(path, identity, nullptr);
    void* mapping = ::mmap(nullptr, identity.bytes, PROT_READ, MAP_SHARED, file.get(), 0);
    if (mapping != MAP_FAILED) return std::make_shared<MappedFile>(path, identity, mapping);
  }
  return std::make_shared<PreadFile>(path, identity);
}

ShardFile::~ShardFile() {
  SharedDescriptors::instance().forget(this);
}

std::shared_ptr<const FileDescriptor> ShardFile::descriptor() const {
  return SharedDescriptors::instance().acquire(this, [this] {
    auto opened = std::make_shared<const FileDescriptor>(absolute_path());
    const FileIdentity found = identity_of(opened->get(), path());
    if (found.device != identity().device || found.inode != identity().inode) {
      throw Error(ErrorKind::stale_index,
                  "'" + path() +
                      "' was replaced by another file while it was being read. "
                      "Open a new reader to read the new one.",
                  {path(), {}, {}});
    }
    return opened;
  });
}

bool ShardFile::is_cached(std::uint64_t offset) const noexcept {
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

ShardFile::ShardFile(std::string path, const FileIdentity& identity, const std::uint8_t* mapping)
    : path_(std::move(path)), identity_(identity), mapping_(mapping) {
  std::error_code unknown_folder;
  absolute_path_ = std::filesystem::absolute(path_, unknown_folder).string();
  if (unknown_folder) absolute_path_ = path_;
}

std::string ShardFile::describe_byte(std::uint64_t offset) const {
  return "byte " + std::to_string(offset);
}

void ShardFile::read(std::uint64_t offset, std::uint8_t* out, std::size_t byte_count) const {
  iovec piece{out, byte_count};
  read(offset, &piece, 1);
}

void ShardFile::throw_shrunk(std::uint64_t offset) const {
  throw Error(ErrorKind::truncated,
              "'" + path_ + "' ends at or before byte " + std::to_string(offset) + ", but had " +
                  std::to_string(bytes()) +
                  " bytes when it was opened: it was truncated meanwhile. Restore it and open a "
                  "new reader.",
              {path_, {}, static_cast<std::int64_t>(offset)});
}

void throw_mapping_fault(const ShardFile& file, std::uint64_t offset) {
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

std::unique_ptr<ShardWalker> walk(std::shared_ptr<const ShardFile> file) {
  if (file->mapping() != nullptr || file->bytes() == 0) {
    return std::make_unique<MappedWalker>(std::move(file));
  }
  return std::make_unique<PreadWalker>(std::move(file));
}

}  // namespace tfrfast
