// NumPy arrays over the core's memory, and integers from NumPy arrays.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tfrfast::python {

// A capsule that keeps `owner` alive, for arrays over its memory. It is not a buffer, so NumPy
// never makes an array over it writable again that was made read-only.
pybind11::capsule keeper_of(std::shared_ptr<const void> owner);

// Who keeps the memory of an array alive, if that was handed to keeper_of(); else null. What it
// keeps needs no Python, and may be let go of on any thread.
std::shared_ptr<const void> owner_of(const pybind11::array& array);

// A writable array over `data` that keeps `owner` alive.
template <class T, class Owner>
pybind11::array_t<T> array_over(const T* data, std::size_t count, std::shared_ptr<Owner> owner) {
  return pybind11::array_t<T>(static_cast<pybind11::ssize_t>(count), data,
                              keeper_of(std::move(owner)));
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
