#include "core/codec/isal_inflater.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/codec/deflater.h"
#include "core/codec/shared_library.h"
#include "core/storage/local/folders.h"

namespace tfrfast {
namespace {

// The used members of ISA-L's struct inflate_state, which has 87,368 bytes in libisal.so.2.
struct IsalState {
  std::uint8_t* next_out;
  std::uint32_t avail_out;
  std::uint32_t total_out;
  const std::uint8_t* next_in;
  std::uint64_t read_in;  // bits taken from the input, not yet decoded
  std::uint32_t avail_in;
  std::int32_t read_in_length;
  std::uint8_t tables[21120];
  std::uint32_t block_state;
  std::uint8_t rest[(128 << 10) - 21164];  // larger than needed
};
static_assert(offsetof(IsalState, read_in) == 24 && offsetof(IsalState, block_state) == 21160);
constexpr std::uint32_t kFinished = 5;  // a value of `block_state`

struct Isal {
  void (*init)(IsalState*);
  int (*set_dictionary)(IsalState*, const std::uint8_t*, std::uint32_t);
  int (*inflate)(IsalState*);
};

class IsalInflater final : public Inflater {
 public:
  explicit IsalInflater(const Isal& isal) : isal_(isal), state_(std::make_unique<IsalState>()) {}

  void begin(unsigned bits, unsigned value, std::span<const std::uint8_t> window) override {
    isal_.init(state_.get());
    state_->read_in = value;
    state_->read_in_length = static_cast<std::int32_t>(bits);
    if (!window.empty()) {
      isal_.set_dictionary(state_.get(), window.data(), static_cast<std::uint32_t>(window.size()));
    }
  }

  Step step(std::span<const std::uint8_t> in, std::span<std::uint8_t> out, bool) override {
    const auto clamped = [](std::size_t count) {
      return static_cast<std::uint32_t>(std::min<std::size_t>(count, INT_MAX));
    };
    state_->next_in = in.data();
    state_->avail_in = clamped(in.size());
    state_->next_out = out.data();
    state_->avail_out = clamped(out.size());
    const int answer = isal_.inflate(state_.get());
    Step step{Stop::needs_input, state_->next_in - in.data(),
              static_cast<std::size_t>(state_->next_out - out.data())};
    if (answer < 0) {
      step.stop = Stop::corrupt;
    } else if (state_->block_state == kFinished) {
      step.stop = Stop::stream_end;
      // ISA-L may have read ahead in this step or in earlier steps.
      step.consumed -= state_->read_in_length / 8;
    } else if (state_->avail_out == 0) {
      step.stop = Stop::output_full;
    }
    return step;
  }

 private:
  const Isal& isal_;
  const std::unique_ptr<IsalState> state_;
};

// Rejects a different library of the same name.
bool passes_trial(const Isal& isal) {
  std::vector<std::uint8_t> bytes(100'000);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i % 7 * (i >> 9));
  }
  Deflater deflater(kZRawWindow, kDefaultLevel);
  const auto deflated = deflater.deflate(bytes);
  std::vector<std::uint8_t> in(deflated.begin(), deflated.end());
  in.resize(in.size() + 8);  // the inflater must leave bytes after the stream
  // the inflater notices the end only if output space is left
  std::vector<std::uint8_t> out(bytes.size() + 1);
  IsalInflater inflater(isal);
  inflater.begin(0, 0, {});
  std::size_t used = 0;
  std::size_t done = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    const std::span<const std::uint8_t> piece(in.data() + used,
                                              std::min<std::size_t>(501, in.size() - used));
    const Inflater::Step step = inflater.step(piece, {out.data() + done, out.size() - done}, false);
    used += static_cast<std::size_t>(step.consumed);
    done += step.produced;
    if (step.stop == Inflater::Stop::corrupt || used > in.size()) return false;
    if (step.stop == Inflater::Stop::stream_end) break;
  }
  out.pop_back();
  return used == in.size() - 8 && done == bytes.size() && out == bytes;
}

// The library inside PyPI's package `isal`, installed beside this package. Empty if the package is
// absent.
std::string library_beside_us() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&make_isal_inflater), &here) == 0) return {};
  const std::string package = folder_of(folder_of(here.dli_fname)) + "/isal";
  try {
    for (const std::string& name : list_folder(package)) {
      if (name.starts_with("igzip_lib.") && name.ends_with(".so")) return package + "/" + name;
    }
  } catch (const Error&) {
    // The package is not installed.
  }
  return {};
}

std::optional<Isal> load_isal() {
  const char* choice = std::getenv("TFRFAST_INFLATE");
  if (choice != nullptr && std::string_view(choice) == "zlib") return {};
  void* library = find_library({"libisal.so.2"});
  if (library == nullptr) {
    if (const std::string path = library_beside_us(); !path.empty()) {
      library = find_library({path.c_str()});
    }
  }
  Isal found;
  if (library == nullptr || !find_function(library, "isal_inflate_init", found.init) ||
      !find_function(library, "isal_inflate_set_dict", found.set_dictionary) ||
      !find_function(library, "isal_inflate", found.inflate) || !passes_trial(found)) {
    return {};
  }
  return found;
}

}  // namespace

std::unique_ptr<Inflater> make_isal_inflater() {
  static const std::optional<Isal> isal = load_isal();
  return isal ? std::make_unique<IsalInflater>(*isal) : nullptr;
}

}  // namespace tfrfast
