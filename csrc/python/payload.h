// The bytes of a record, from any Python object with bytes.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "python/byte_view.h"

namespace tfrfast::python {

// Make and destroy a payload with the GIL held. bytes() may be read without the GIL.
class Payload {
 public:
  explicit Payload(pybind11::handle record) {
    if (PyBytes_CheckExact(record.ptr())) {  // much faster than requesting a buffer
      kept_ = pybind11::reinterpret_borrow<pybind11::object>(record);
      bytes_ = bytes_of(record);
      return;
    }
    // Strings of NumPy offer their code points, 4 bytes each, as bytes.
    if (PyObject_CheckBuffer(record.ptr()) == 0 || PyUnicode_Check(record.ptr())) {
      throw pybind11::type_error(std::string("A record must be bytes, not ") +
                                 Py_TYPE(record.ptr())->tp_name + ".");
    }
    if (pybind11::isinstance<pybind11::array>(record)) {
      const auto dtype = pybind11::reinterpret_borrow<pybind11::array>(record).dtype();
      // NumPy offers the addresses of Python objects as bytes.
      if (dtype.flags() & kHoldsObjects) {
        throw pybind11::type_error("A record must be bytes, not an array of Python objects.");
      }
      if (dtype.kind() == 'U') {
        throw pybind11::type_error("A record must be bytes, not an array of str. Encode it.");
      }
    }
    view_.emplace(record);
    bytes_ = {view_->data(), view_->size()};
  }

  std::span<const std::uint8_t> bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::uint64_t kHoldsObjects = 1;  // NumPy's NPY_ITEM_REFCOUNT

  pybind11::object kept_;
  std::optional<ByteView> view_;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace tfrfast::python
