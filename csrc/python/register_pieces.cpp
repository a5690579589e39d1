// Lets tfrfast/columns pick rows.
#include <pybind11/numpy.h>

#include "core/base/error.h"
#include "core/example/pieces.h"
#include "python/columns.h"
#include "python/register.h"
#include "python/without_gil.h"

namespace py = pybind11;

namespace tfrfast::python {
namespace {

using Bytes = ExactNumbers<std::uint8_t>;
using Int64s = Numbers<std::int64_t>;

// Below this size, the work takes less time than releasing and retaking the GIL.
constexpr std::size_t kCopyWithoutGilBytes = 64 << 10;

Pieces pieces_of(const Bytes& bytes, const Int64s& starts, const Int64s& sizes) {
  return {span_of(bytes), span_of(starts), span_of(sizes)};
}

template <class Work>
void run_without_gil(std::size_t bytes, const Work& work) {
  if (bytes < kCopyWithoutGilBytes) return work();
  const WithoutGil without_gil;
  work();
}

py::array joined_pieces(const Bytes& bytes, const Int64s& starts, const Int64s& sizes) {
  const Pieces pieces = pieces_of(bytes, starts, sizes);
  const std::size_t count = count_bytes(pieces);
  PooledBuffer out(std::max<std::size_t>(count, 1));
  run_without_gil(count, [&] { join_pieces(pieces, {out.data(), count}); });
  return own<std::uint8_t>(std::move(out), {static_cast<py::ssize_t>(count)});
}

void put_pieces(const Bytes& bytes, const Int64s& starts, const Int64s& sizes, const Int64s& places,
                Bytes& out) {
  const Pieces pieces = pieces_of(bytes, starts, sizes);
  const std::span<const std::int64_t> there = span_of(places);
  const std::span<std::uint8_t> space(out.mutable_data(), static_cast<std::size_t>(out.size()));
  run_without_gil(space.size(), [&] { place_pieces(pieces, there, space); });
}

py::array equal_pieces(const Bytes& one, const Int64s& one_starts, const Int64s& one_sizes,
                       const Bytes& other, const Int64s& other_starts, const Int64s& other_sizes) {
  const Pieces ours = pieces_of(one, one_starts, one_sizes);
  const Pieces theirs = pieces_of(other, other_starts, other_sizes);
  py::array_t<bool> result(static_cast<py::ssize_t>(ours.count()));
  const std::span<bool> equal(result.mutable_data(), ours.count());
  run_without_gil(ours.bytes.size() + ours.count(), [&] { compare_pieces(ours, theirs, equal); });
  return result;
}

}  // namespace

void register_pieces(py::module_& module) {
  module.def("join_pieces", &joined_pieces, py::arg("bytes"), py::arg("starts"), py::arg("sizes"),
             "`bytes[starts[i]:starts[i] + sizes[i]]` for each i, one after the other.");
  module.def("place_pieces", &put_pieces, py::arg("bytes"), py::arg("starts"), py::arg("sizes"),
             py::arg("places"), py::arg("out").noconvert(),
             "Copies `bytes[starts[i]:starts[i] + sizes[i]]` to `out[places[i]:]` for each i.");
  module.def("equal_pieces", &equal_pieces, py::arg("one"), py::arg("one_starts"),
             py::arg("one_sizes"), py::arg("other"), py::arg("other_starts"),
             py::arg("other_sizes"),
             "For each i, whether piece i of the one equals piece i of the other.");
}

}  // namespace tfrfast::python
