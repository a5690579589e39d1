// Opens and publishes tfrfast's own files beside data: indexes, key files and step files. All code
// goes through these functions. The files say where records are, so a user who can write such a
// file can hide records. In a folder that other users may write to, the names may stand for
// anything.
//
// A file is believed if every user who could have written the file could have written the data as
// well. A link, for the file or its folder, counts only if the link belongs to this user or to
// root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/storage/publication.h"
#include "core/storage/storage_options.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Whether to believe what `file` says about data: the file's owner is this user, root or the data's
// owner, and every other user who may write the file may write the data, too.
bool may_be_believed(const Writers& file, const Writers& data) noexcept;
// The reason against, for messages: "it belongs to ..." or "users who may not write to ...".
std::string why_not_believed(const Writers& file, const std::string& data_path,
                             const Writers& data);

// Opens and maps such a file without waiting. Read the file only under the fault guard. Throws
// Error io (ENOENT if the file does not exist), and stale_index for anything but a regular file and
// for a stranger's link.
std::shared_ptr<const StoredFile> open_own_file(const std::string& path,
                                                const StorageOptions& options = {});

// Throws Error stale_index, and warns once, if `path` is a link that belongs to neither this user
// nor root.
void refuse_link_of_stranger(const std::string& path);

// Makes the folder of such files if necessary. Throws Error io (ELOOP if the folder is a stranger's
// link).
void make_own_folder(const std::string& folder);

// Whether a file begins like an own file, or is empty or begins with zeros, as after a power cut.
// False for a link. Never throws.
bool begins_like_own_file(const std::string& path) noexcept;

// Checks a name before an own file gets it. Throws Error io if the folder is a stranger's link
// (ELOOP), or if the name is taken by a file that does not begin like an own file (EEXIST).
void check_own_name(const std::string& path);
// Publishes an own file: makes the check of check_own_name() before the file gets its name, and
// lets only the owner write to the file. Throws Error io.
void commit_own_file(Publication& file, bool durable, Existing existing = Existing::replace);

// The first bytes of each kind of own file.
inline constexpr std::size_t kBeginningBytes = 8;
inline constexpr char kFolderMagic[kBeginningBytes] = {'T', 'F', 'R', 'F', 'S', 'E', 'T', '\n'};
inline constexpr char kKeysMagic[kBeginningBytes] = {'t', 'f', 'r', '.', 'k', 'e', 'y', 's'};
inline constexpr char kStepsMagic[kBeginningBytes] = {'t', 'f', 'r', '.', 's', 't', 'e', 'p'};
inline constexpr char kLengthsMagic[kBeginningBytes] = {'t', 'f', 'r', '.', 'l', 'e', 'n', 's'};

}  // namespace tfrfast
