#include "core/example/layout.h"

#include <string>

#include "core/base/error.h"

namespace tfrfast {
namespace {

constexpr const Layout* kLayouts[] = {
    &kFixedLayout,
    &kPaddedLayout,
    &kRaggedLayout,
    &kSparseLayout,
};

}  // namespace

const Layout& layout_named(std::string_view name) {
  for (const Layout* layout : kLayouts) {
    if (name == layout->name) return *layout;
  }
  throw Error(ErrorKind::invalid, "'" + std::string(name) + "' is not a layout of features.");
}

}  // namespace tfrfast
