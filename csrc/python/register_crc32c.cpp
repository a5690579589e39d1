#include "core/crc32c/crc32c.h"
#include "python/byte_view.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {

void register_crc32c(py::module_& module) {
  module.def(
      "crc32c",
      [](py::handle data, std::uint32_t value) {
        const ByteView bytes(data);
        const WithoutGil without_gil;
        return crc32c(bytes.data(), bytes.size(), value);
      },
      py::arg("data"), py::arg("value") = 0,
      "CRC-32C of a bytes-like object; `value` is the CRC of the data before it.");
}

}  // namespace tfrfast::python
