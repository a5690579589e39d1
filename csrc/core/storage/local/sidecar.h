// Opens and publishes sidecars, the files of tfrfast beside data: indexes, key files and step
// files. All code goes through these functions. Sidecars say where records are, so a user who can
// write a sidecar can hide records. In a folder that other users may write to, the names may stand
// for anything.
//
// A sidecar is believed if every user who could have written it could have written the data as
// well. A link, for the sidecar or its folder, counts only if the link belongs to this user or to
// root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/storage/local/published_file.h"
#include "core/storage/storage_options.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Whether to believe what `file` says about data: the file's owner is this user, root or the data's
// owner, and every other user who may write the file may write the data, too.
bool may_be_believed(const Writers& file, const Writers& data) noexcept;
// The reason against, for messages: "it belongs to ..." or "users who may not write to ...".
std::string why_not_believed(const Writers& file, const std::string& data_path,
                             const Writers& data);

// Opens and maps a sidecar without waiting. Read the file only under the fault guard. Throws
// Error io (ENOENT if the file does not exist), and stale_index for anything but a regular file and
// for a stranger's link.
std::shared_ptr<const StoredFile> open_sidecar(const std::string& path,
                                               const StorageOptions& options = {});

// Throws Error stale_index, and warns once, if `path` is a link that belongs to neither this user
// nor root.
void refuse_link_of_stranger(const std::string& path);

// Makes a folder for sidecars if necessary. Throws Error io (ELOOP if the folder is a stranger's
// link).
void make_sidecar_folder(const std::string& folder);

// Reads the first bytes of a regular file. False if the file is shorter, or the path is a link.
// Does not change the file's time of last use.
bool peek(const std::string& path, void* bytes, std::size_t count) noexcept;

// Whether a file begins like a sidecar, or is empty or begins with zeros, as after a power cut.
// False for a link. Never throws.
bool begins_like_sidecar(const std::string& path) noexcept;

// Checks a name before a sidecar gets it. Throws Error io if the folder is a stranger's link
// (ELOOP), or if the name is taken by a file that does not begin like a sidecar (EEXIST).
void check_sidecar_name(const std::string& path);
// Publishes a sidecar: makes the check of check_sidecar_name() before the file gets its name, and
// lets only the owner write to the file. Throws Error io.
void commit_sidecar(PublishedFile& file, bool durable, Existing existing = Existing::replace);

// The first bytes of each kind of sidecar.
inline constexpr std::size_t kBeginningBytes = 8;
inline constexpr char kFolderMagic[kBeginningBytes] = {'T', 'F', 'R', 'F', 'S', 'E', 'T', '\n'};
inline constexpr char kKeysMagic[kBeginningBytes] = {'t', 'f', 'r', '.', 'k', 'e', 'y', 's'};
inline constexpr char kStepsMagic[kBeginningBytes] = {'t', 'f', 'r', '.', 's', 't', 'e', 'p'};
inline constexpr char kLengthsMagic[kBeginningBytes] = {'t', 'f', 'r', '.', 'l', 'e', 'n', 's'};

}  // namespace tfrfast
