// Converts decoded columns to the form that tfrfast/features/compiled.py takes.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/example/columns.h"
#include "core/example/schema.h"
#include "python/arrays.h"

namespace tfrfast::python {

// Returns (values, offsets, row splits, indices, shape, crops), with None for a missing part. The
// row splits are a list if rows hold rows. The arrays own their memory, and NumPy may write into
// them.
pybind11::tuple to_python(Column column, const CompiledFeature& feature);
pybind11::list to_python(std::vector<Column> columns,
                         const FeatureSchema& schema);  // one for each feature

// Turns a pooled buffer into an array. The buffer returns to the pool after the last array over it.
template <class Number>
pybind11::array own(PooledBuffer buffer, std::vector<pybind11::ssize_t> shape) {
  auto owner = std::make_shared<PooledBuffer>(std::move(buffer));
  auto* const data = owner->as<Number>();
  return pybind11::array(pybind11::dtype::of<Number>(), std::move(shape), data,
                         keeper_of(std::move(owner)));
}

}  // namespace tfrfast::python
