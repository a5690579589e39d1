#include "core/index/index_search.h"

#include "core/base/error.h"
#include "core/base/warnings.h"
#include "core/index/index_places.h"
#include "core/index/index_state.h"
#include "core/storage/local/folders.h"

namespace tfrfast {
namespace {

bool has_proof(const ShardIndex& index, const StoredFile& file) {
  const std::string path = proof_path(file.path(), index.origin());
  const std::optional<ShardFacts> proven = path.empty() ? std::nullopt : load_proof(path, index);
  return proven && is_in_state(*proven, index, file);
}

class Search {
 public:
  Search(const StoredFile& file, std::optional<Compression> compression, Proofs proofs,
         FoundIndex& found)
      : file_(file), compression_(compression), proofs_(proofs), found_(found) {}

  void look_in(const IndexFolder& folder, const IndexPlace& place) {
    if (!folder.why_not().empty()) found_.why_not = folder.why_not();
    for (const auto& index : folder.indexes()) look_at(*index, place);
  }

 private:
  bool is_believed(const std::string& path, const Writers& writers) {
    const Writers& data = file_.facts().writers;
    if (may_be_believed(writers, data)) return true;
    found_.why_not =
        "Index '" + path + "' is ignored: " + why_not_believed(writers, file_.path(), data) + ".";
    // Warn once per folder, because the folder probably holds more such indexes.
    warn_once("owner " + std::to_string(writers.owner) + " " + folder_of(path),
              found_.why_not + " Remove it, or keep your own elsewhere: index_folder=.");
    return false;
  }

  // A moved shard may be listed under its former data folder.
  void look_at(const FolderIndex& index, const IndexPlace& place) {
    for (const bool is_there : {true, false}) {
      for (const DirectoryEntry& entry : index.find(place.name)) {
        if (found_.fitting != nullptr || (entry.data == place.data) != is_there) continue;
        try {
          if (is_believed(index.path(), index.file_facts().writers)) {
            judge(index.open(entry), !place.cached_for.empty());
          }
        } catch (const Error& error) {
          found_.why_not = error.message();
        }
      }
    }
  }

  void judge(std::shared_ptr<const ShardIndex> index, bool is_cached) {
    const ShardFacts& facts = index->facts();
    const bool may_fit = facts.compression == compression_.value_or(facts.compression) &&
                         facts.file_bytes == file_.facts().bytes;
    // The indexes in the user's cache were made by this user.
    const auto claims_hold = [&] { return is_cached || has_claimed_damage(*index, file_); };
    if (may_fit && ((index_fits(*index, file_) && claims_hold()) ||
                    (proofs_ == Proofs::count && has_proof(*index, file_)))) {
      found_.fitting = std::move(index);
      return;
    }
    found_.why_not = "Index '" + index->origin() + "' was made for another state of '" +
                     file_.path() + "' (" + std::to_string(facts.file_bytes) + " bytes then, " +
                     std::to_string(file_.facts().bytes) + " now, or other records).";
    if (may_fit) found_.unproven.push_back(std::move(index));
  }

  const StoredFile& file_;
  const std::optional<Compression> compression_;
  const Proofs proofs_;
  FoundIndex& found_;
};

}  // namespace

std::string IndexPlaces::in_words() const {
  std::string words;
  for (const auto& place : {in_folder, cached}) {
    if (place) words += (words.empty() ? "'" : ", '") + folder_index_path(place->folder) + "'";
  }
  return words;
}

FoundIndex look_for_index(const IndexPlaces& places, IndexFolders& folders, const StoredFile& file,
                          std::optional<Compression> compression, Proofs proofs) {
  FoundIndex found;
  Search search(file, compression, proofs, found);
  const auto look = [&](const std::optional<IndexPlace>& place) {
    if (found.fitting != nullptr || !place) return;
    search.look_in(*folders.at(place->folder, file.options()), *place);
  };
  // A look into the cache costs nothing, a look at a remote storage a round trip.
  const bool is_remote = file.traits().is_remote;
  look(is_remote ? places.cached : places.in_folder);
  look(is_remote ? places.in_folder : places.cached);
  return found;
}

std::shared_ptr<const ShardIndex> proven_by(const ShardIndex& walked, const FoundIndex& found,
                                            const std::shared_ptr<const StoredFile>& file) {
  for (const auto& index : found.unproven) {
    if (is_proven_by(walked, *index, file)) return index;
  }
  return nullptr;
}

}  // namespace tfrfast
