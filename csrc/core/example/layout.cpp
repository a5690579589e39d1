#include "core/example/layout.h"

#include "core/base/choice.h"

namespace tfrfast {
namespace {

constexpr const Layout* kLayouts[] = {
    &kFixedLayout,  &kPaddedLayout,   &kRaggedLayout,    &kSparseLayout,
    &kPackedLayout, &kSegmentsLayout, &kPositionsLayout, &kStartsLayout,
};

}  // namespace

const Layout& layout_named(std::string_view name) {
  return *find_choice("layout", name, kLayouts, &Layout::name);
}

}  // namespace tfrfast
