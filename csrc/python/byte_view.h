// The bytes of Python objects.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tfrfast::python {

// Copies bytes into an object of Python.
inline pybind11::bytes to_bytes(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The bytes of an object whose type is `bytes`. The object owns them.
inline std::span<const std::uint8_t> bytes_of(pybind11::handle bytes) {
  return {reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(bytes.ptr())),
          static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

// Borrows the bytes of an object with the buffer protocol, for the view's lifetime. Make and
// destroy a view with the GIL held. The bytes may be read without the GIL. Meanwhile the object
// cannot be resized or freed, but its bytes may change.
class ByteView {
 public:
  // Throws TypeError if `object` has no bytes, ValueError if the bytes are not contiguous.
  explicit ByteView(pybind11::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_STRIDED_RO) != 0) {
      throw pybind11::error_already_set();
    }
    if (PyBuffer_IsContiguous(&view_, 'C') == 0) {
      PyBuffer_Release(&view_);
      throw pybind11::value_error(
          "the bytes of this object are not contiguous in memory (C order): pass a copy, "
          "such as bytes(data) or numpy.ascontiguousarray(data)");
    }
  }
  ByteView(const ByteView&) = delete;
  ByteView& operator=(const ByteView&) = delete;
  ~ByteView() { PyBuffer_Release(&view_); }

  const std::uint8_t* data() const noexcept { return static_cast<const std::uint8_t*>(view_.buf); }
  std::size_t size() const noexcept { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

}  // namespace tfrfast::python
