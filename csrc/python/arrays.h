// Makes NumPy arrays over the core's memory, and reads integers from NumPy arrays.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tfrfast::python {

// A capsule that keeps `owner` alive, for arrays over the owner's memory. A capsule is not a
// buffer, so NumPy never makes a read-only array over it writable again.
pybind11::capsule keeper_of(std::shared_ptr<const void> owner);

// Returns the owner of an array's memory, if the owner was passed to keeper_of(). Otherwise null.
// The owner needs no Python, and may be released on any thread.
std::shared_ptr<const void> owner_of(const pybind11::array& array);

// Makes a writable array over `data` that keeps `owner` alive.
template <class T, class Owner>
pybind11::array_t<T> array_over(const T* data, std::size_t count, std::shared_ptr<Owner> owner) {
  return pybind11::array_t<T>(static_cast<pybind11::ssize_t>(count), data,
                              keeper_of(std::move(owner)));
}

// Whether the array is aligned, so that C++ may read the array. c_style and forcecast do not
// guarantee alignment.
inline bool is_aligned(const pybind11::array& array) {
  return (array.flags() & pybind11::detail::npy_api::NPY_ARRAY_ALIGNED_) != 0;
}

template <class T>
pybind11::array_t<T> read_only(pybind11::array_t<T> array) {
  pybind11::detail::array_proxy(array.ptr())->flags &=
      ~pybind11::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

// Reads record numbers from a sequence or an array of integers. Negative numbers count from the
// end, as in lists. Throws Error out_of_range, and TypeError for anything but integers, such as
// floats and masks. `what` names the numbered items in messages.
std::vector<std::int64_t> record_numbers(const pybind11::object& numbers, std::int64_t count,
                                         const char* what = "Record");

// The numbers that a slice takes from `count` items.
std::vector<std::int64_t> slice_numbers(const pybind11::slice& slice, std::size_t count);

// The bytes of a number by Arrow's format, a single letter. 0 for other formats.
std::size_t arrow_number_bytes(char format) noexcept;

}  // namespace tfrfast::python
