#include "tensorflow/string_probe.h"

#include <atomic>

namespace tfrfast::tensorflow {
namespace {

std::atomic<std::int64_t> copies{0};
std::atomic<std::int64_t> live{0};

void add_reference(StringOwner*) {
  copies.fetch_add(1, std::memory_order_relaxed);
  live.fetch_add(1, std::memory_order_relaxed);
}
bool drop_reference(StringOwner*) {
  return live.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

// Never freed: a runtime that does not count would read the owner afterwards.
constexpr char kText[] = "a string that is too long to be kept inside the tensor";
StringOwner owner{&add_reference, &drop_reference, nullptr};

}  // namespace

void compute_probe_strings(KernelCall& call) {
  const std::int64_t count = call.integer(0);
  live.fetch_add(count, std::memory_order_relaxed);
  for (TString& string : call.allocate_strings(0, static_cast<std::size_t>(count))) {
    string.write_view(kText, sizeof kText - 1, &owner);
  }
}

ProbeCounts probe_counts() noexcept {
  return {copies.load(), live.load()};
}

}  // namespace tfrfast::tensorflow
