// NumPy arrays over the core's memory, and integers from NumPy arrays.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tfrfast::python {

// A writable array over `data` that keeps `owner` alive. The capsule that it is based on is not a
// buffer, so NumPy never makes an array writable again that was made read-only.
template <class T, class Owner>
pybind11::array_t<T> array_over(const T* data, std::size_t count, std::shared_ptr<Owner> owner) {
  auto* kept = new std::shared_ptr<Owner>(std::move(owner));
  const pybind11::capsule base(
      kept, [](void* pointer) { delete static_cast<std::shared_ptr<Owner>*>(pointer); });
  return pybind11::array_t<T>(static_cast<pybind11::ssize_t>(count), data, base);
}

// Whether the array is aligned, so that C++ may read it. c_style and forcecast do not guarantee
// that.
inline bool is_aligned(const pybind11::array& array) {
  return (array.flags() & pybind11::detail::npy_api::NPY_ARRAY_ALIGNED_) != 0;
}

template <class T>
pybind11::array_t<T> read_only(pybind11::array_t<T> array) {
  pybind11::detail::array_proxy(array.ptr())->flags &=
      ~pybind11::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

// Record numbers from a sequence or an array of integers. Negative ones count from the end, as in
// lists. Throws Error out_of_range, and TypeError for anything that is not an integer, floats and
// masks included. Messages call the numbered things `what`.
std::vector<std::int64_t> record_numbers(const pybind11::object& numbers, std::int64_t count,
                                         const char* what = "Record");

// The numbers that a slice of `count` takes.
std::vector<std::int64_t> slice_numbers(const pybind11::slice& slice, std::size_t count);

}  // namespace tfrfast::python
