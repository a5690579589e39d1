#include <optional>

#include "core/crc32c/crc32c.h"
#include "python/byte_view.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

// Below this size, a CRC takes less time than releasing and retaking the GIL.
constexpr std::size_t kReleaseGilBytes = 64 << 10;

std::uint32_t crc_of(py::handle data, std::uint32_t value) {
  const ByteView bytes(data);
  std::optional<WithoutGil> without_gil;
  if (bytes.size() >= kReleaseGilBytes) without_gil.emplace();
  return crc32c(bytes.data(), bytes.size(), value);
}

std::uint32_t crc_from(py::handle value) {
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!index) throw py::error_already_set();
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0 || number < 0 || number > 0xffffffffLL) {
    throw py::value_error("value must be a CRC, at least 0 and below 2**32, not " +
                          std::string(py::str(index)));
  }
  return static_cast<std::uint32_t>(number);
}

}  // namespace

void register_crc32c(py::module_& module) {
  module.def(
      "crc32c",
      [](const py::object& data, const py::object& value) { return crc_of(data, crc_from(value)); },
      py::arg("data"), py::arg("value") = 0,
      "CRC-32C of a bytes-like object; `value` is the CRC of the data before it.\n\n"
      ">>> tfr.crc32c(b\"123456789\") == tfr.crc32c(b\"6789\", tfr.crc32c(b\"12345\")) == "
      "0xe3069283\n"
      "True");
  module.def(
      "masked_crc32c", [](const py::object& data) { return mask_crc(crc_of(data, 0)).value; },
      py::arg("data"),
      "CRC-32C of a bytes-like object, masked as TFRecord files store it.\n\n"
      ">>> hex(tfr.masked_crc32c(b\"123456789\"))\n"
      "'0xc78ab0e5'");
}

}  // namespace tfrfast::python
