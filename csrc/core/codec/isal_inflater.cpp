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
#include "core/codec/zlib.h"
#include "core/storage/local/folders.h"

namespace tfrfast {
namespace {

// ISA-L's struct inflate_state, which has 87,368 bytes in libisal.so.2.
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
  std::uint32_t settings[5];
  std::int32_t stored_bytes_left;  // of a block that is not compressed
  std::int32_t overflow[4];
  std::int16_t wrapper;
  std::int16_t header_bytes;               // of a block's header that the input ended in
  std::int32_t kept_end;                   // of the output kept inside ISA-L
  std::int32_t kept_begin;                 // of the part that was not handed out yet
  std::uint8_t rest[(128 << 10) - 21216];  // larger than needed
};
static_assert(offsetof(IsalState, read_in) == 24 && offsetof(IsalState, block_state) == 21160 &&
              offsetof(IsalState, stored_bytes_left) == 21184 &&
              offsetof(IsalState, header_bytes) == 21206 &&
              offsetof(IsalState, kept_begin) == 21212);
// Values of `block_state`.
constexpr std::uint32_t kBeforeHeader = 0, kInHeader = 1, kStored = 2, kFinished = 5;

// ISA-L does not stop at a block's end, but shows where a block begins if the input ends in the
// block's header. In pieces of this size the input ends in most headers, which seldom have less
// than 50 bytes.
constexpr std::size_t kInputPiece = 64;

struct Isal {
  void (*init)(IsalState*);
  int (*set_dictionary)(IsalState*, const std::uint8_t*, std::uint32_t);
  int (*inflate)(IsalState*);
  IsalChecksum crc32;
  IsalChecksum adler32;
  std::optional<IsalDeflate> deflate;
};

class IsalInflater final : public Inflater {
 public:
  explicit IsalInflater(const Isal& isal) : isal_(isal), state_(std::make_unique<IsalState>()) {}

  Kind kind() const noexcept override { return Kind::fastest; }

  void begin(unsigned bits, unsigned value, std::span<const std::uint8_t> window) override {
    isal_.init(state_.get());
    made_ = 0;
    state_->read_in = value;
    state_->read_in_length = static_cast<std::int32_t>(bits);
    if (!window.empty()) {
      isal_.set_dictionary(state_.get(), window.data(), static_cast<std::uint32_t>(window.size()));
    }
  }

  Inflated step(std::span<const std::uint8_t> in, std::span<std::uint8_t> out,
                bool stop_at_block_ends) override {
    const auto clamped = [](std::size_t count) {
      return static_cast<std::uint32_t>(std::min<std::size_t>(count, INT_MAX));
    };
    // ISA-L uses the total only to refuse matches from before the stream. The total would overflow
    // after 4 GiB.
    state_->total_out = std::min<std::uint32_t>(state_->total_out, kDeflateWindowBytes);
    state_->next_in = in.data();
    state_->next_out = out.data();
    state_->avail_out = clamped(out.size());
    int answer = 0;
    bool is_block_end = false;
    std::size_t left = in.size();
    do {
      const std::uint8_t* const next_in = state_->next_in;
      const std::uint8_t* const next_out = state_->next_out;
      state_->avail_in = clamped(stop_at_block_ends ? std::min(left, piece_bytes()) : left);
      answer = isal_.inflate(state_.get());
      made_ += static_cast<std::size_t>(state_->next_out - next_out);
      is_block_end = stop_at_block_ends && answer >= 0 && is_at_block_end();
      if (state_->next_in == next_in && state_->next_out == next_out) break;
      left = in.size() - static_cast<std::size_t>(state_->next_in - in.data());
    } while (stop_at_block_ends && answer >= 0 && !is_block_end && left > 0 &&
             state_->block_state != kFinished && state_->avail_out > 0);
    Inflated step{Stop::needs_input, state_->next_in - in.data(),
                  static_cast<std::size_t>(state_->next_out - out.data())};
    if (answer < 0) {
      step.stop = Stop::corrupt;
    } else if (state_->block_state == kFinished) {
      step.stop = Stop::stream_end;
      // ISA-L may have read ahead in this step or in earlier steps.
      step.consumed -= state_->read_in_length / 8;
    } else if (is_block_end) {
      step.stop = Stop::block_end;
      step.consumed -= return_header();
      step.unused_bits = static_cast<unsigned>(state_->read_in_length);
    } else if (state_->avail_out == 0) {
      step.stop = Stop::output_full;
    }
    return step;
  }

 private:
  std::size_t piece_bytes() const {
    // First hand out the output that ISA-L keeps: it may contain the end of the block.
    if (state_->kept_begin != state_->kept_end) return 0;
    if (state_->block_state != kStored) return kInputPiece;
    // The header of a stored block is too short to be met by chance.
    const int left = state_->stored_bytes_left - state_->read_in_length / 8;
    return static_cast<std::size_t>(std::max(left, 1));
  }

  // True only after output, so that every stop lies after the previous stop.
  bool is_at_block_end() const {
    return state_->block_state == kInHeader && state_->kept_begin == state_->kept_end && made_ > 0;
  }

  // Goes back to the beginning of the header that the input ended in. Returns the bytes that must
  // be read again.
  std::ptrdiff_t return_header() {
    const std::ptrdiff_t bytes = state_->header_bytes + state_->read_in_length / 8;
    state_->block_state = kBeforeHeader;
    state_->header_bytes = 0;
    state_->read_in_length %= 8;
    state_->read_in &= (1u << state_->read_in_length) - 1;
    made_ = 0;
    return bytes;
  }

  const Isal& isal_;
  const std::unique_ptr<IsalState> state_;
  std::size_t made_ = 0;  // bytes of output since the beginning or the last block's end
};

// Rejects a library of the same name that works differently. Stops at the end of a block, and goes
// on with another inflater.
bool passes_trial(const Isal& isal) {
  std::vector<std::uint8_t> bytes(150'000);
  std::uint32_t noise = 1;
  for (std::uint8_t& byte : bytes) {
    noise = noise * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(noise >> 28);
  }
  Deflater deflater(kZRawWindow, kDefaultLevel);
  const auto deflated = deflater.deflate(bytes);
  std::vector<std::uint8_t> in(deflated.begin(), deflated.end());
  in.resize(in.size() + 8);  // the inflater must leave bytes after the stream
  // the inflater notices the end only if output space is left
  std::vector<std::uint8_t> out(bytes.size() + 1);
  auto inflater = std::make_unique<IsalInflater>(isal);
  inflater->begin(0, 0, {});
  std::size_t used = 0;
  std::size_t done = 0;
  bool has_stopped = false;
  for (int turn = 0; turn < 1000; ++turn) {
    const std::span<const std::uint8_t> piece(in.data() + used,
                                              std::min<std::size_t>(501, in.size() - used));
    const bool stops = done > bytes.size() / 3 && !has_stopped;
    // With little space, ISA-L keeps output from before the block's end.
    const std::size_t left = out.size() - done;
    const std::size_t space = stops ? std::min<std::size_t>(97, left) : left;
    const Inflater::Inflated step = inflater->step(piece, {out.data() + done, space}, stops);
    used += static_cast<std::size_t>(step.consumed);
    done += step.produced;
    if (step.stop == Inflater::Stop::corrupt || used > in.size()) return false;
    if (step.stop == Inflater::Stop::stream_end) break;
    if (step.stop != Inflater::Stop::block_end) continue;
    has_stopped = true;
    inflater = std::make_unique<IsalInflater>(isal);
    inflater->begin(step.unused_bits, in[used - 1] >> (8 - step.unused_bits),
                    {out.data() + done - kDeflateWindowBytes, kDeflateWindowBytes});
  }
  out.pop_back();
  const auto count = static_cast<unsigned>(bytes.size());
  if (isal.crc32(0, bytes.data(), count) != zlib().crc32(0, bytes.data(), count)) return false;
  if (isal.adler32(1, bytes.data(), count) != zlib().adler32(1, bytes.data(), count)) return false;
  return has_stopped && used == in.size() - 8 && done == bytes.size() && out == bytes;
}

// The library inside PyPI's package `isal`. Empty if the package is absent.
std::string library_in_package(const std::string& package) {
  try {
    for (const std::string& name : list_folder(package)) {
      if (name.starts_with("igzip_lib.") && name.ends_with(".so")) return package + "/" + name;
    }
  } catch (const Error&) {
    // The package is not installed.
  }
  return {};
}

// The library that this package contains, or that the package `isal` beside this package contains,
// or that of the machine. Null if all are missing.
void* find_isal() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&make_isal_inflater), &here) != 0) {
    const std::string folder = folder_of(here.dli_fname);
    for (const std::string& path :
         {folder + "/libisal.so.2", library_in_package(folder_of(folder) + "/isal")}) {
      if (path.empty()) continue;
      if (void* const found = find_library({path.c_str()}); found != nullptr) return found;
    }
  }
  return find_library({"libisal.so.2"});
}

std::optional<Isal> load_isal() {
  const char* choice = std::getenv("TFRFAST_INFLATE");
  if (choice != nullptr && std::string_view(choice) == "zlib") return {};
  void* const library = find_isal();
  Isal found;
  if (library == nullptr || !find_function(library, "isal_inflate_init", found.init) ||
      !find_function(library, "isal_inflate_set_dict", found.set_dictionary) ||
      !find_function(library, "isal_inflate", found.inflate) ||
      !find_function(library, "crc32_gzip_refl", found.crc32) ||
      !find_function(library, "isal_adler32", found.adler32) || !passes_trial(found)) {
    return {};
  }
  IsalDeflate deflate;
  if (find_function(library, "isal_deflate_stateless_init", deflate.init) &&
      find_function(library, "isal_deflate_stateless", deflate.deflate)) {
    found.deflate = deflate;
  }
  return found;
}

const Isal* isal() {
  static const std::optional<Isal> loaded = load_isal();
  return loaded ? &*loaded : nullptr;
}

}  // namespace

std::unique_ptr<Inflater> make_isal_inflater() {
  const Isal* const found = isal();
  return found != nullptr ? std::make_unique<IsalInflater>(*found) : nullptr;
}

IsalChecksum isal_crc32() {
  const Isal* const found = isal();
  return found != nullptr ? found->crc32 : nullptr;
}

IsalChecksum isal_adler32() {
  const Isal* const found = isal();
  return found != nullptr ? found->adler32 : nullptr;
}

const IsalDeflate* isal_deflate() {
  const Isal* const found = isal();
  return found != nullptr && found->deflate ? &*found->deflate : nullptr;
}

}  // namespace tfrfast
