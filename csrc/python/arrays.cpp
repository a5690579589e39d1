#include "python/arrays.h"

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/numbering.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

constexpr const char* kKeeper = "tfrfast memory";

}  // namespace

py::capsule keeper_of(std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  return py::capsule(new Owner(std::move(owner)), kKeeper, [](PyObject* capsule) {
    delete static_cast<Owner*>(PyCapsule_GetPointer(capsule, kKeeper));
  });
}

std::shared_ptr<const void> owner_of(const py::array& array) {
  py::object base = array.base();
  while (base && py::isinstance<py::array>(base)) {
    base = py::reinterpret_borrow<py::array>(base).base();
  }
  if (!base || !PyCapsule_IsValid(base.ptr(), kKeeper)) return nullptr;
  return *static_cast<std::shared_ptr<const void>*>(PyCapsule_GetPointer(base.ptr(), kKeeper));
}

void ByteStrings::check(const char* what, std::int64_t bytes) const {
  for (std::size_t i = 0; i < size(); ++i) {
    const std::int64_t begin = offsets_[i], end = offsets_[i + 1];
    if (begin >= 0 && begin <= end && end <= bytes) continue;
    throw Error(ErrorKind::invalid, std::string(what) + " " + std::to_string(i) +
                                        " should be bytes " + std::to_string(begin) + " to " +
                                        std::to_string(end) + " of " + std::to_string(bytes) +
                                        ": offsets must ascend, and lie from 0 to " +
                                        std::to_string(bytes) + ".");
  }
}

std::vector<std::int64_t> record_numbers(const py::object& numbers, std::int64_t count,
                                         const char* what) {
  py::array array;
  try {
    array = py::array(numbers);
  } catch (const py::error_already_set& error) {
    if (error.matches(PyExc_MemoryError)) throw;
    throw py::type_error(std::string(what) + " numbers must be integers, in a list or an array.");
  }
  const char kind = array.dtype().kind();
  if (array.size() != 0 && kind != 'i' && kind != 'u') {
    throw py::type_error(std::string(what) + " numbers must be integers, not " +
                         py::str(array.dtype()).cast<std::string>() +
                         (kind == 'b' ? ". For a mask, pass numpy.flatnonzero(mask)." : "."));
  }
  if (array.ndim() != 1) {
    throw py::type_error(std::string(what) + " numbers must be one-dimensional, but have " +
                         std::to_string(array.ndim()) + " dimensions.");
  }
  if (kind == 'u' && array.itemsize() == sizeof(std::uint64_t)) {
    // As int64, the largest numbers would become negative, and count from the end.
    const auto unsigned_numbers = Numbers<std::uint64_t>(array);
    for (py::ssize_t i = 0; i < unsigned_numbers.size(); ++i) {
      const std::uint64_t number = unsigned_numbers.data()[i];
      if (number >= static_cast<std::uint64_t>(count)) {
        throw_no_such(what, std::to_string(number), static_cast<std::uint64_t>(count));
      }
    }
  }
  std::vector<std::int64_t> result = copy_of(Numbers<std::int64_t>(array));
  for (std::int64_t& number : result) number = number_below(count, number, what);
  return result;
}

std::vector<std::int64_t> slice_numbers(const py::slice& slice, std::size_t count) {
  std::size_t start = 0, stop = 0, step = 0, length = 0;
  if (!slice.compute(count, &start, &stop, &step, &length)) {
    const py::error_already_set error;
    if (!error.matches(PyExc_TypeError)) throw error;
    throw py::type_error("A slice must hold integers, not " + py::repr(slice).cast<std::string>() +
                         ".");
  }
  bytes_for<std::int64_t>(length);
  std::vector<std::int64_t> numbers(length);
  for (std::size_t i = 0; i < length; ++i) {
    numbers[i] =
        // Unsigned wrap-around makes a negative step work.
        static_cast<std::int64_t>(start + i * step);
  }
  return numbers;
}

std::size_t arrow_number_bytes(char format) noexcept {
  switch (format) {
    case 'c':
    case 'C':
      return 1;
    case 's':
    case 'S':
    case 'e':
      return 2;
    case 'i':
    case 'I':
    case 'f':
      return 4;
    case 'l':
    case 'L':
    case 'g':
      return 8;
    default:
      return 0;
  }
}

}  // namespace tfrfast::python
