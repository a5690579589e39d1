// Makes NumPy arrays over the core's memory, and reads integers from NumPy arrays.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "python/without_gil.h"

namespace tfrfast::python {

// Arguments that are arrays of numbers, contiguous in memory. Numbers of other types are converted.
template <class T>
using Numbers = pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>;
// The same, without conversions that lose anything.
template <class T>
using ExactNumbers = pybind11::array_t<T, pybind11::array::c_style>;

template <class T, int Flags>
std::span<const T> span_of(const pybind11::array_t<T, Flags>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

// A copy, which no other thread can change.
template <class T, int Flags>
std::vector<T> copy_of(const pybind11::array_t<T, Flags>& array) {
  return {array.data(), array.data() + array.size()};
}

template <class T>
pybind11::array_t<T> to_array(const std::vector<T>& numbers) {
  pybind11::array_t<T> array(static_cast<pybind11::ssize_t>(numbers.size()));
  std::copy(numbers.begin(), numbers.end(), array.mutable_data());
  return array;
}

// An array of `count` numbers that fill(out) writes, without the GIL.
template <class T, class Fill>
pybind11::array_t<T> filled_array(std::size_t count, const Fill& fill) {
  pybind11::array_t<T> array(static_cast<pybind11::ssize_t>(count));
  T* const out = array.mutable_data();
  const WithoutGil without_gil;
  fill(out);
  return array;
}

// Byte strings of arrays: string i is data[offsets[i]:offsets[i + 1]]. The offsets are copied and
// then checked, because another thread may change the arrays. The bytes are not copied.
class ByteStrings {
 public:
  // Throws Error invalid, in which a string is a `what`.
  template <int DataFlags, int OffsetFlags>
  ByteStrings(const char* what, const pybind11::array_t<std::uint8_t, DataFlags>& data,
              const pybind11::array_t<std::int64_t, OffsetFlags>& offsets)
      : data_(data.data()), offsets_(copy_of(offsets)) {
    check(what, data.size());
  }
  std::size_t size() const noexcept { return offsets_.empty() ? 0 : offsets_.size() - 1; }
  std::span<const std::uint8_t> operator[](std::size_t i) const noexcept {
    return {data_ + offsets_[i], static_cast<std::size_t>(offsets_[i + 1] - offsets_[i])};
  }

 private:
  void check(const char* what, std::int64_t bytes) const;

  const std::uint8_t* data_;
  std::vector<std::int64_t> offsets_;
};

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
