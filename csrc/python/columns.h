// Decoded columns in the form that tfrfast/features/compiled.py takes.
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

// (values, offsets, row splits, indices, shape), with None for what the column does not have. The
// arrays own their memory, and NumPy may write into it.
pybind11::tuple to_python(Column column, const CompiledFeature& feature);
pybind11::list to_python(std::vector<Column> columns,
                         const FeatureSchema& schema);  // one for each feature

// A pooled buffer as an array that owns it. It goes back to the pool with the last array over it.
template <class Number>
pybind11::array own(PooledBuffer buffer, std::vector<pybind11::ssize_t> shape) {
  auto owner = std::make_shared<PooledBuffer>(std::move(buffer));
  auto* const data = owner->as<Number>();
  return pybind11::array(pybind11::dtype::of<Number>(), std::move(shape), data,
                         keeper_of(std::move(owner)));
}

}  // namespace tfrfast::python
