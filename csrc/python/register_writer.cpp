#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/storage/local/published_file.h"
#include "core/write/shard_writer.h"
#include "core/write/sharded_writer.h"
#include "python/choices.h"
#include "python/classes.h"
#include "python/output.h"
#include "python/plain_function.h"
#include "python/register.h"
#include "python/text.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

WriteOptions options_of(bool index, const std::string& index_folder, bool durable, bool overwrite,
                        const std::string& compression, int level) {
  WriteOptions options;
  options.index = index;
  options.index_folder = index_folder;
  options.durable = durable;
  options.existing = overwrite ? Existing::replace : Existing::keep;
  options.compression = compression_choice(compression).value_or(Compression::none);
  options.level = level;
  return options;
}

std::unique_ptr<Output<ShardWriter>> open_shard(const std::string& path, bool index,
                                                const std::string& index_folder, bool durable,
                                                bool overwrite, const std::string& compression,
                                                int level) {
  const WithoutGil without_gil;
  const WriteOptions options =
      options_of(index, index_folder, durable, overwrite, compression, level);
  return std::make_unique<Output<ShardWriter>>(std::make_unique<ShardWriter>(path, options), path,
                                               durable);
}

std::unique_ptr<Output<ShardedWriter>> open_shards(const std::string& prefix,
                                                   std::size_t num_shards, std::uint64_t max_bytes,
                                                   bool index, const std::string& index_folder,
                                                   bool durable, bool overwrite,
                                                   const std::string& compression, int level) {
  const WithoutGil without_gil;
  ShardedOptions options{num_shards, max_bytes,
                         options_of(index, index_folder, durable, overwrite, compression, level)};
  return std::make_unique<Output<ShardedWriter>>(std::make_unique<ShardedWriter>(prefix, options),
                                                 prefix, durable);
}

template <class Core>
PyObject* call_write(PyObject* self, PyObject* record) noexcept {
  return call_plainly([=] {
    py::handle(self).cast<Output<Core>&>().write(record);
    return py::none();
  });
}

template <class Core>
PyMethodDef write_definition{"write", &call_write<Core>, METH_O, nullptr};

template <class Core>
py::class_<Output<Core>> declare(py::module_& module, const char* name) {
  using Self = Output<Core>;
  return py::class_<Self>(module, name)
      .def_property_readonly(
          "write",
          [](const py::object& self) { return bind_plainly(write_definition<Core>, self); })
      .def("write_batch", &Self::write_batch, py::arg("records"))
      .def("close", &Self::close)
      .def("abort", &Self::abort)
      .def_property_readonly("closed", &Self::closed)
      .def_property_readonly("is_of_this_process", &Self::is_of_this_process)
      .def_property_readonly("num_records", &Self::record_count)
      .def_property_readonly("num_bytes", &Self::bytes)
      .def("paths", [](Self& self) { return to_texts(self.paths()); });
}

py::bytes frame_of(py::handle record) {
  const Payload payload(record);
  const std::span<const std::uint8_t> bytes = payload.bytes();
  std::string frame(bytes.size() + kFrameOverhead, '\0');
  auto* out = reinterpret_cast<std::uint8_t*>(frame.data());
  encode_header(bytes.size(), out);
  if (!bytes.empty()) std::memcpy(out + kHeaderBytes, bytes.data(), bytes.size());
  // Another thread may change the record, so the checksum is of the copy.
  encode_footer(masked_crc32c(out + kHeaderBytes, bytes.size()), out + kHeaderBytes + bytes.size());
  return py::bytes(frame);
}

}  // namespace

void register_writer(py::module_& module) {
  declare<ShardWriter>(module, "Writer")
      .def(py::init(&open_shard), py::arg("path"), py::arg("index"), py::arg("index_folder"),
           py::arg("sync"), py::arg("overwrite"), py::arg("compression"), py::arg("level"));
  declare<ShardedWriter>(module, "ShardedWriter")
      .def(py::init(&open_shards), py::arg("prefix"), py::arg("num_shards"), py::arg("max_bytes"),
           py::arg("index"), py::arg("index_folder"), py::arg("sync"), py::arg("overwrite"),
           py::arg("compression"), py::arg("level"));
  py::class_<HomeProcess>(module, "HomeProcess", "The process that made the object.")
      .def(constructor<HomeProcess>())
      .def("is_this_one", &HomeProcess::is_this_one);
  module.def("frame", &frame_of, py::arg("record"), "The record as it is in a shard.");
  module.def(
      "move_file",
      [](const std::string& from, const std::string& to, bool overwrite) {
        move_file(from, to, overwrite ? Existing::replace : Existing::keep);
      },
      py::arg("from_path"), py::arg("to_path"), py::arg("overwrite"), py::call_guard<WithoutGil>(),
      "Renames a file within its filesystem, in one step.");
  module.def(
      "check_shard_places",
      [](const std::string& prefix, std::size_t num_shards, bool index,
         const std::string& index_folder) {
        WriteOptions options;
        options.index = index;
        options.index_folder = index_folder;
        const WithoutGil without_gil;
        check_shard_places(prefix, num_shards, options);
      },
      py::arg("prefix"), py::arg("num_shards"), py::arg("index"), py::arg("index_folder"),
      "OSError if such shards, 0 for any number, could not be published.");
  module.def(
      "list_shards",
      [](const std::string& prefix) {
        std::vector<std::string> found;
        {
          const WithoutGil without_gil;
          found = list_shards(prefix);
        }
        return to_texts(found);
      },
      py::arg("prefix"));
}

}  // namespace tfrfast::python
