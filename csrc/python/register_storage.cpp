#include <pybind11/stl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/storage/cache/cache_folder.h"
#include "core/storage/cache/cache_writer.h"
#include "core/storage/cache/cached_object.h"
#include "core/storage/remote/listed_objects.h"
#include "core/storage/remote/remote_client.h"
#include "core/storage/storage.h"
#include "core/storage/storage_options.h"
#include "python/classes.h"
#include "python/register.h"
#include "python/text.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

StorageOptions make_options(const std::string& access, const std::string& cache_folder,
                            std::uint64_t cache_limit_bytes, const std::string& place,
                            const std::string& inflated_folder,
                            std::uint64_t inflated_limit_bytes) {
  return {access, cache_folder, cache_limit_bytes, place, inflated_folder, inflated_limit_bytes};
}

py::bytes read_beginning(const std::string& path, const StorageOptions& storage,
                         std::uint64_t max_bytes) {
  std::string bytes;
  {
    const WithoutGil without_gil;
    const auto file = StoredFile::open(path, IoMode::pread, storage);
    bytes.resize(static_cast<std::size_t>(std::min(file->bytes(), max_bytes)));
    file->read(0, reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
  }
  return bytes;
}

std::uint64_t clear_disk_cache(const std::string& folder) {
  const WithoutGil without_gil;
  return CacheFolder::open(folder, 0)->clear();
}

}  // namespace

void register_storage(py::module_& module) {
  py::class_<StorageOptions>(module, "StorageOptions")
      .def(constructor(&make_options), py::arg("access"), py::arg("cache_folder"),
           py::arg("cache_limit_bytes"), py::arg("place"), py::arg("inflated_folder"),
           py::arg("inflated_limit_bytes"))
      .def("encode", [](const StorageOptions& self) { return py::bytes(self.encode()); });
  module.def("read_beginning", &read_beginning, py::arg("path"), py::arg("storage"),
             py::arg("max_bytes"), "Returns the first bytes of a file in any storage.");
  module.def("remote_client_table",
             [] { return reinterpret_cast<std::uintptr_t>(&client_table()); });
  module.def(
      "listed_version",
      [](const std::string& url, const std::string& access) -> std::optional<std::string> {
        const auto listed = listed_object(url, access);
        return listed ? std::optional(listed->version) : std::nullopt;
      },
      py::arg("url"), py::arg("access"),
      "What the last listing has said about an object, as the client has described it.");
  module.def("cache_bytes_read", &cache_bytes_read);
  module.def("finish_cache_writes", [] {
    const WithoutGil without_gil;
    CacheWriter::instance().finish(60'000);
  });
  module.def("clear_disk_cache", &clear_disk_cache, py::arg("folder"));
}

}  // namespace tfrfast::python
