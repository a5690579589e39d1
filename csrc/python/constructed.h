// Objects whose constructor has thrown. Python can still hold one, in a traceback or in __del__,
// and pybind11 would hand its functions memory that nothing was built in.
#pragma once

#include <pybind11/pybind11.h>

#include "core/base/error.h"

namespace tfrfast::python {

// Whether `self`, an object of a class of this module or derived from it, was built.
inline bool is_constructed(pybind11::handle self) {
  auto* const instance = reinterpret_cast<pybind11::detail::instance*>(self.ptr());
  return instance->get_value_and_holder().holder_constructed();
}

// For a type_caster of a class that Python derives from: what was not built counts as closed.
template <class Class>
class ConstructedOnly : public pybind11::detail::type_caster_base<Class> {
 public:
  bool load(pybind11::handle source, bool convert) {
    if (!pybind11::detail::type_caster_base<Class>::load(source, convert)) return false;
    if (!source.is_none() && !is_constructed(source)) {
      throw Error(ErrorKind::closed, "This object was never opened: its constructor raised.");
    }
    return true;
  }
};

// The property `closed` of such a class.
template <class Class>
bool is_closed(pybind11::handle self) {
  return !is_constructed(self) || self.cast<Class&>().closed();
}

}  // namespace tfrfast::python
