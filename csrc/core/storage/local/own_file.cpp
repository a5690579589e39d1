#include "core/storage/local/own_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/base/warnings.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/in_place.h"
#include "core/storage/local/users.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

// Describes the owner of a link. Empty unless `path` is a link that belongs to neither this user
// nor root.
std::string whose_link(const std::string& path) {
  const NameStatus status = look_at_name(path);
  if (status.kind != NameKind::link || is_trusted_user(status.owner)) return "";
  return "it is a link that belongs to " + name_of_user(status.owner) +
         ", who is neither you nor root";
}

}  // namespace

bool may_be_believed(const Writers& file, const Writers& data) noexcept {
  if (!is_trusted_user(file.owner) && file.owner != data.owner) return false;
  if (data.all_may_write) return true;
  return !file.all_may_write &&
         (!file.group_may_write || (data.group_may_write && data.group == file.group));
}

std::string why_not_believed(const Writers& file, const std::string& data_path,
                             const Writers& data) {
  if (is_trusted_user(file.owner) || file.owner == data.owner) {
    return "users who may not write to '" + data_path +
           "' may write to it (`chmod go-w` takes that away)";
  }
  return "it belongs to " + name_of_user(file.owner) +
         ", who is neither you, nor root, nor the owner of '" + data_path + "'";
}

void refuse_link_of_stranger(const std::string& path) {
  const std::string why = whose_link(path);
  if (why.empty()) return;
  const std::string message = "'" + path + "' is ignored: " + why + ".";
  warn_once("link " + path, message + " Remove it.");
  throw Error(ErrorKind::stale_index, message, {path, {}, {}});
}

std::shared_ptr<const StoredFile> open_own_file(const std::string& path,
                                                const StorageOptions& options) {
  if (!is_local(path)) return StoredFile::open(path, IoMode::mapped, options);
  refuse_link_of_stranger(folder_of(path));
  refuse_link_of_stranger(path);
  if (look_at(path).kind == NameKind::other) {
    throw Error(ErrorKind::stale_index,
                "'" + path + "' is not a regular file, as files of tfrfast are. Remove it.",
                {path, {}, {}});
  }
  return StoredFile::open(path, IoMode::mapped, options);
}

void make_own_folder(const std::string& folder) {
  make_folders(folder);
  if (!is_local(folder)) return;
  if (const std::string why = whose_link(folder); !why.empty()) {
    throw_system_error(
        ELOOP, "Keeping files in", folder,
        "tfrfast keeps no files there, because " + why + ". Remove it, or name another folder.");
  }
}

bool begins_like_own_file(const std::string& path) noexcept {
  char bytes[kBeginningBytes] = {};
  if (!peek(path, bytes, sizeof bytes)) return look_at_name(path).is_empty_file();
  const auto is_beginning = [&](const char* magic) {
    return std::memcmp(bytes, magic, sizeof bytes) == 0;
  };
  return is_beginning(kFolderMagic) || is_beginning(kKeysMagic) || is_beginning(kStepsMagic) ||
         is_beginning(kLengthsMagic) || is_beginning("\0\0\0\0\0\0\0");
}

void check_own_name(const std::string& path) {
  if (!is_local(path)) return;
  const std::string folder = folder_of(path);
  if (look_at_name(folder).kind != NameKind::folder) make_own_folder(folder);
  if (look_at_name(path).kind == NameKind::nothing || begins_like_own_file(path)) return;
  throw_system_error(EEXIST, "Replacing", path,
                     "It does not begin like a file of tfrfast. Move it away, or name another "
                     "folder.");
}

void commit_own_file(Publication& file, bool durable, Existing existing) {
  check_own_name(file.path());
  file.keep_others_from_writing();
  file.commit(durable, existing);
}

}  // namespace tfrfast
