#include "core/index/index_search.h"

#include <optional>

#include "core/base/error.h"
#include "core/base/warnings.h"
#include "core/index/index_file.h"
#include "core/index/index_keeping.h"
#include "core/index/index_places.h"
#include "core/index/index_state.h"
#include "core/storage/folders.h"
#include "core/storage/users.h"

namespace tfrfast {
namespace {

// The maker of an index can hide records. The owner of the data could do that anyway.
bool may_be_believed(std::uint32_t owner, const StoredFile& file) {
  return owner == this_user() || owner == 0 || owner == file.facts().owner;
}

bool has_proof(const ShardIndex& index, const StoredFile& file) {
  const std::string path = proof_path(file.path(), index.origin());
  const std::optional<ShardFacts> proven = path.empty() ? std::nullopt : load_proof(path, index);
  return proven && is_in_state(*proven, index, file);
}

void look_at(const std::string& path, const StoredFile& file, Compression compression,
             Proofs proofs, FoundIndex* found) {
  try {
    std::uint32_t owner = 0;
    std::shared_ptr<const ShardIndex> index = load_index(path, &owner);
    if (index == nullptr) return;
    if (!may_be_believed(owner, file)) {
      found->why_not = "Index '" + path + "' is ignored: it belongs to " + name_of_user(owner) +
                       ", who is neither you, nor root, nor the owner of '" + file.path() + "'.";
      // Once for each folder, because it probably holds more such indexes.
      warn_once("owner " + std::to_string(owner) + " " + folder_of(path),
                found->why_not + " Remove it, or keep your own elsewhere: index=\"...\".");
      return;
    }
    const ShardFacts& facts = index->facts();
    const bool may_fit = facts.compression == compression && facts.file_bytes == file.facts().bytes;
    if (may_fit &&
        (index_fits(*index, file) || (proofs == Proofs::count && has_proof(*index, file)))) {
      // Others, who may still read it with an older tfrfast, do not see the cache.
      if (index->is_old() && path == cached_index_path(file.path())) {
        keep_in_cache(*index, file.path());
      }
      found->fitting = std::move(index);
      return;
    }
    found->why_not = "Index '" + path + "' was made for another state of '" + file.path() + "' (" +
                     std::to_string(facts.file_bytes) + " bytes then, " +
                     std::to_string(file.facts().bytes) + " now, or other records).";
    if (may_fit) found->unproven.push_back(std::move(index));
  } catch (const Error& error) {
    found->why_not = error.message();
  }
}

}  // namespace

FoundIndex look_for_index(const std::vector<std::string>& places, const StoredFile& file,
                          Compression compression, Proofs proofs) {
  FoundIndex found;
  for (const std::string& place : places) {
    look_at(place, file, compression, proofs, &found);
    if (found.fitting != nullptr) break;
  }
  return found;
}

std::shared_ptr<const ShardIndex> proven_by(const ShardIndex& scanned, const FoundIndex& found,
                                            const std::shared_ptr<const StoredFile>& file) {
  for (const auto& index : found.unproven) {
    if (is_proven_by(scanned, *index, file)) return index;
  }
  return nullptr;
}

}  // namespace tfrfast
