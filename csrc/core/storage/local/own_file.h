// The one door for files of ours that lie beside data: indexes and key files. They say where
// records are, so anyone who can write one can hide records. In a folder that others may write to,
// their names may stand for anything.
//
// A file is believed if nobody could have written it who could not have written the data as well.
// A link, as the file or as its folder, counts only if it belongs to this user or to root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/storage/publication.h"
#include "core/storage/stored_file.h"

namespace tfrfast {

// Whether what `file` says about data may be believed: its owner is this user, root or the data's
// owner, and everyone else who may write it may write the data, too.
bool may_be_believed(const Writers& file, const Writers& data) noexcept;
// Why it may not, for messages: "it belongs to ..." or "others may write to it, ...".
std::string why_not_believed(const Writers& file, const std::string& data_path,
                             const Writers& data);

// Opens such a file without waiting for anything, and maps it: it may be read under the fault guard
// alone. Throws Error io (ENOENT if there is none), and stale_index if it is not a regular file or
// is a stranger's link.
std::shared_ptr<const StoredFile> open_own_file(const std::string& path,
                                                const std::string& access = "");

// Throws Error stale_index, and warns once, if `path` is a link that belongs to neither this user
// nor root.
void refuse_link_of_stranger(const std::string& path);

// Makes the folder of such files, unless it is there. Throws Error io (ELOOP if it is a stranger's
// link).
void make_own_folder(const std::string& folder);

// Whether a file begins like one of ours, or as a power cut may leave one: with nothing, or zeros.
// A link does not. Never throws.
bool begins_like_own_file(const std::string& path) noexcept;

// Checks a name before a file of ours gets it. Throws Error io if the folder is a stranger's link
// (ELOOP), or if something has that name which does not begin like a file of ours (EEXIST).
void check_own_name(const std::string& path);
// Publishes a file of ours: the same check before it gets its name, and nobody but its owner may
// write to it. Throws Error io.
void commit_own_file(Publication& file, bool durable, Existing existing = Existing::replace);

// Each file of ours begins with one of these.
inline constexpr std::size_t kBeginningBytes = 8;
inline constexpr char kFolderMagic[kBeginningBytes] = {'T', 'F', 'R', 'F', 'S', 'E', 'T', '\n'};
inline constexpr char kProofMagic[kBeginningBytes] = {'T', 'F', 'R', 'F', 'P', 'R', 'F', '\n'};
inline constexpr char kKeysMagic[kBeginningBytes] = {'t', 'f', 'r', '.', 'k', 'e', 'y', 's'};
inline constexpr char kStepsMagic[kBeginningBytes] = {'t', 'f', 'r', '.', 's', 't', 'e', 'p'};

}  // namespace tfrfast
