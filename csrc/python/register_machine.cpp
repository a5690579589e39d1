#include <pybind11/stl.h>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/printable.h"
#include "core/codec/isal_inflater.h"
#include "core/codec/span_cache.h"
#include "core/codec/zlib.h"
#include "core/crc32c/crc32c.h"
#include "core/example/varints.h"
#include "core/storage/read_costs.h"
#include "core/storage/stored_file.h"
#include "python/classes.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// Returns (name of the fast inflater, version of zlib), each None if this machine lacks the
// library.
py::tuple inflaters() {
  py::object isal = py::none();
  py::object version = py::none();
  try {
    version = py::str(zlib().version());
    if (make_isal_inflater() != nullptr) isal = py::str("ISA-L");
  } catch (const Error&) {
    // zlib is missing, and ISA-L is not used without zlib.
  }
  return py::make_tuple(isal, version);
}

bool is_mapped(const std::string& path) {
  const WithoutGil without_gil;
  const auto file = StoredFile::open(path);
  return file->mapping() != nullptr;
}

// Returns the seconds of a read at random and of a MiB in order. None if the file is short, in
// memory, or cannot be read.
py::object read_costs(const std::string& path) {
  std::optional<ReadCosts> costs;
  try {
    const WithoutGil without_gil;
    costs = measure_read_costs(*StoredFile::open(path, IoMode::pread));
  } catch (const Error&) {
    // The reader of the file will report the error.
  }
  if (!costs) return py::none();
  return py::make_tuple(costs->random_s, costs->in_order_s_per_mib);
}

// Encodes a str. Bytes of a file's name that were not UTF-8 are restored.
std::string encoded(const py::str& text) {
  PyObject* bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape");
  if (bytes == nullptr) {
    PyErr_Clear();
    bytes = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass");
  }
  if (bytes == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(bytes);
}

}  // namespace

void register_machine(py::module_& module) {
  module.def("crc32c_kernel", [] { return active_crc32c_kernel().name; });
  module.def("varint_kernel", [] { return active_varint_kernel(); });
  module.def("inflaters", &inflaters);
  module.def(
      "inflated_bytes", [] { return SpanCache::instance().max_bytes(); },
      "How many bytes of compressed shards stay in memory, inflated.");
  py::class_<JobEnd, std::shared_ptr<JobEnd>>(module, "JobEnd")
      .def(constructor<JobEnd>())
      .def("obey", [](const std::shared_ptr<JobEnd>& end) { JobEnd::obey(end); })
      .def("come", &JobEnd::come);
  module.def("max_padded_bytes", &max_padded_bytes);
  module.def("is_mapped", &is_mapped, py::arg("path"));
  module.def("read_costs", &read_costs, py::arg("path"));
  module.def("printable", [](const py::str& text) { return printable(encoded(text)); });
}

}  // namespace tfrfast::python
