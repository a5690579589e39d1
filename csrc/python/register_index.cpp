#include <pybind11/stl.h>

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/warnings.h"
#include "core/index/folder_writing.h"
#include "core/index/index_cache.h"
#include "core/index/index_places.h"
#include "core/index/index_state.h"
#include "core/index/opening.h"
#include "core/storage/local/sidecar.h"
#include "core/storage/storage.h"
#include "core/storage/storage_options.h"
#include "python/classes.h"
#include "python/register.h"
#include "python/text.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// Indexes a shard. Returns (index path, whether the index was built, records, pieces of damage). An
// empty folder means the sibling folder or, for a URL, the user's cache.
py::tuple build(const std::string& path, const std::string& folder, bool force,
                const std::shared_ptr<IndexFolders>& folders, const py::object& progress,
                const StorageOptions* storage) {
  IndexedShard shard;
  {
    WithoutGil without_gil;
    IndexOptions options;
    options.folder = folder;
    if (storage != nullptr) options.storage = *storage;
    options.folders = folders;
    shard = build_index(StoredFile::open(path, IoMode::automatic, options.storage), options, force,
                        [&](std::uint64_t bytes) { without_gil.call_back(progress, bytes); });
  }
  return py::make_tuple(to_text(shard.index_path), shard.was_built, shard.index->record_count(),
                        shard.index->damage().size());
}

std::string index_object(const std::string& url, const std::string& access,
                         const std::string& shard_path, const std::string& folder,
                         bool folder_is_shared) {
  const WithoutGil without_gil;
  IndexOptions options;
  options.storage.access = access;
  options.at_damage = AtDamage::get_over;
  const auto object = StoredFile::open(url, IoMode::automatic, options.storage);
  const auto file =
      shard_path == url ? object : StoredFile::open(shard_path, IoMode::automatic, options.storage);
  return save_index_of_object(object, open_indexed(file, options), folder, folder_is_shared);
}

// The indexes of shards that were written to be moved. A power cut may have taken some, or all:
// then the shards get none, and need none.
class MadeIndexes {
 public:
  explicit MadeIndexes(const std::string& folder) {
    const WithoutGil without_gil;
    unless_lost([&] { index_ = FolderIndex::load(own_index_path(folder)); });
  }

  void add(const std::string& name, const std::string& folder,
           const std::string& shard_path) const {
    if (index_ == nullptr) return;
    const WithoutGil without_gil;
    unless_lost([&] { add_moved_index(*index_, name, place_for(folder, shard_path), shard_path); });
  }

 private:
  template <class Use>
  static void unless_lost(const Use& use) {
    try {
      use();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::stale_index) throw;
    }
  }

  std::shared_ptr<const FolderIndex> index_;
};

// A number for each shard with an index in the folder. A change of the shard's entry changes the
// number.
py::dict states_in(const std::string& folder) {
  py::dict states;
  std::optional<IndexFolder> found;
  {
    const WithoutGil without_gil;
    found.emplace(folder);
  }
  for (const auto& index : found->indexes()) {
    for (const DirectoryEntry& each : index->entries()) {
      states[py::make_tuple(py::bytes(std::string(index->name_of(each))), each.data)] =
          crc32c(bytes_of(&each.shard), sizeof each.shard);
    }
  }
  return states;
}

py::list cached_indexes() {
  py::list all;
  std::vector<CachedFile> files;
  {
    const WithoutGil without_gil;
    files = list_index_cache();
  }
  for (const CachedFile& each : files) {
    all.append(py::make_tuple(to_text(each.path), each.bytes, each.last_used_ns));
  }
  return all;
}

}  // namespace

void register_index(py::module_& module) {
  py::class_<IndexFolders, std::shared_ptr<IndexFolders>>(module, "IndexFolders")
      .def(constructor<IndexFolders>());
  module.def("build_index", &build, py::arg("path"), py::arg("folder"), py::arg("force"),
             py::arg("folders"), py::arg("progress"), py::arg("storage") = py::none());
  module.def(
      "index_object",
      [](const std::string& url, const std::string& access, const std::string& shard_path,
         const std::string& folder, bool folder_is_shared) {
        return to_text(index_object(url, access, shard_path, folder, folder_is_shared));
      },
      py::arg("url"), py::arg("access"), py::arg("shard_path"), py::arg("folder"),
      py::arg("folder_is_shared"),
      "Saves the index of an object in a folder. Takes the index of the shard at shard_path, which "
      "has the same bytes.");
  py::class_<MadeIndexes>(module, "MadeIndexes")
      .def(constructor<MadeIndexes, const std::string&>(), py::arg("folder"))
      .def(
          "add", &MadeIndexes::add, py::arg("name"), py::arg("folder"), py::arg("shard_path"),
          "Adds the index of a shard that was moved, if it was made and is intact. An empty folder "
          "means the sibling folder.");
  module.def("indexed_states", &states_in, py::arg("folder"));
  module.def("compact_index", &compact_index, py::arg("folder"), py::call_guard<WithoutGil>());
  module.def("join_index", &join_index, py::arg("folder"), py::arg("added"),
             py::call_guard<WithoutGil>(),
             "Adds all entries of an index file to the index of a folder.");
  module.def("codecs", [] {
    py::list all;
    for (const Codec& codec : codecs()) {
      all.append(py::make_tuple(codec.name, static_cast<int>(codec.compression), codec.window_bits,
                                codec.written_in_members));
    }
    return all;
  });
  module.def("check_sidecar_name", &check_sidecar_name, py::arg("path"),
             py::call_guard<WithoutGil>());
  module.def(
      "identity_lasts", [](const std::string& path) { return examine_file(path).version_lasts; },
      py::arg("path"), py::call_guard<WithoutGil>());
  module.def(
      "sibling_index_folder",
      [](const std::string& path) { return to_text(sibling_index_folder(path)); },
      py::arg("shard_path"));
  module.def(
      "index_path_in", [](const std::string& folder) { return to_text(own_index_path(folder)); },
      py::arg("folder"), "Returns the path of the indexes that this user's processes keep.");
  module.def(
      "cached_index_path", [](const std::string& path) { return to_text(cached_index_path(path)); },
      py::arg("shard_path"));
  module.def("cache_indexes", &cache_indexes, py::arg("urls"), py::arg("index"),
             py::call_guard<WithoutGil>(),
             "Copies indexes that another process has put into a folder to the user's cache.");
  module.def("index_cache_folder", [] { return to_text(index_cache_folder()); });
  module.def("index_cache_limit_bytes", &index_cache_limit_bytes);
  module.def("cached_indexes", &cached_indexes);
  module.def("take_warnings", [] { return to_texts(take_warnings()); });
  module.def(
      "prune_index_cache",
      [](std::uint64_t max_bytes) { return prune_index_cache(max_bytes, FreshIndexes::remove); },
      py::arg("max_bytes"), py::call_guard<WithoutGil>());
}

}  // namespace tfrfast::python
