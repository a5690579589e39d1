// Every CRC-32C kernel that this CPU supports, on data in the L1 or L2 cache.
// GOOGLE_CRC32C_LIBRARY=/path/to/libcrc32c.so adds Google's kernel for comparison; the wheel of
// google-crc32c holds this library.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/crc32c/crc32c.h"

using namespace tfrfast;

namespace {

using GoogleExtend = std::uint32_t (*)(std::uint32_t crc, const std::uint8_t* bytes,
                                       std::size_t count);
GoogleExtend google_extend = nullptr;

std::uint32_t extend_google(const std::uint8_t* bytes, std::size_t count,
                            std::uint32_t crc) noexcept {
  return google_extend(crc, bytes, count);
}

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// Calls of one size that do not depend on each other, so that the CPU may overlap them.
void one_size(benchmark::State& state, Crc32cKernel::Extend extend) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto bytes = random_bytes(count);
  for (auto _ : state) benchmark::DoNotOptimize(extend(bytes.data(), count, 0));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// Each call waits for the previous call.
void chained(benchmark::State& state, Crc32cKernel::Extend extend) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto bytes = random_bytes(count);
  std::uint32_t crc = 0;
  for (auto _ : state) benchmark::DoNotOptimize(crc = extend(bytes.data(), count, crc));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// Records of random sizes from [low, high], which branch predictors cannot guess. Time is per
// record.
void records(benchmark::State& state, Crc32cKernel::Extend extend) {
  constexpr std::size_t kRecords = 4096, kBytes = 24 << 10;
  std::mt19937 random(2);
  std::uniform_int_distribution<std::size_t> size(static_cast<std::size_t>(state.range(0)),
                                                  static_cast<std::size_t>(state.range(1)));
  struct Span {
    std::size_t begin, count;
  };
  std::vector<Span> spans(kRecords);
  std::size_t begin = 0;
  for (Span& span : spans) {
    span.count = size(random);
    if (begin + span.count > kBytes) begin = 0;
    span.begin = begin;
    begin += span.count + 16;
  }
  const auto bytes = random_bytes(kBytes);
  while (state.KeepRunningBatch(kRecords)) {
    for (const Span& span : spans) {
      benchmark::DoNotOptimize(extend(bytes.data() + span.begin, span.count, 0));
    }
  }
}

void of_u64(benchmark::State& state, Crc32cKernel::OfU64 function) {
  std::uint64_t value = 258;
  for (auto _ : state) benchmark::DoNotOptimize(function(++value));
}

// Frames in memory far larger than the caches, each read once. All copies go to the same memory.
class Shard {
 public:
  explicit Shard(std::size_t record_bytes)
      : frame_bytes_(record_bytes + 16),
        run_frames_(std::max<std::size_t>(1, kRunBytes / frame_bytes_)) {
    static const std::vector<std::uint8_t> shard = random_bytes(kShardBytes);
    shard_ = shard.data();
  }

  // Returns the next run of adjacent frames, and sets `*out` to the place of its copy.
  const std::uint8_t* next(std::uint8_t** out) {
    if (kShardBytes - from_ < run_bytes()) from_ = 0;
    if (kOutBytes - to_ < run_bytes()) to_ = 0;
    *out = out_.data() + to_;
    to_ += run_bytes();
    from_ += run_bytes();
    return shard_ + from_ - run_bytes();
  }
  std::size_t frame_bytes() const { return frame_bytes_; }
  std::size_t run_frames() const { return run_frames_; }
  std::size_t run_bytes() const { return frame_bytes_ * run_frames_; }

 private:
  static constexpr std::size_t kShardBytes = 512 << 20, kOutBytes = 14 << 20, kRunBytes = 64 << 10;
  std::size_t frame_bytes_, run_frames_, from_ = 0, to_ = 0;
  const std::uint8_t* shard_;
  std::vector<std::uint8_t> out_ = std::vector<std::uint8_t>(kOutBytes);
};
constexpr std::size_t kHeaderBytes = 12, kFooterBytes = 4;

void copy(benchmark::State& state, Crc32cKernel::Copy copy) {
  const auto record_bytes = static_cast<std::size_t>(state.range(0));
  Shard shard(record_bytes);
  for (auto _ : state) {
    std::uint8_t* out;
    const std::uint8_t* frame = shard.next(&out);
    for (std::size_t i = 0; i < shard.run_frames(); ++i) {
      std::memcpy(out, frame, kHeaderBytes);
      benchmark::DoNotOptimize(copy(out + kHeaderBytes, frame + kHeaderBytes, record_bytes, 0));
      frame += shard.frame_bytes();
      out += shard.frame_bytes();
      std::memcpy(out - kFooterBytes, frame - kFooterBytes, kFooterBytes);
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(shard.run_bytes()));
}

// An alternative to copy(): memcpy of a run, then the CRC of each record in the copy.
void copy_then_crc(benchmark::State& state, Crc32cKernel::Extend extend) {
  const auto record_bytes = static_cast<std::size_t>(state.range(0));
  Shard shard(record_bytes);
  for (auto _ : state) {
    std::uint8_t* out;
    const std::uint8_t* frame = shard.next(&out);
    std::memcpy(out, frame, shard.run_bytes());
    for (std::size_t i = 0; i < shard.run_frames(); ++i, out += shard.frame_bytes()) {
      benchmark::DoNotOptimize(extend(out + kHeaderBytes, record_bytes, 0));
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(shard.run_bytes()));
}

void add_extend(const std::string& name, Crc32cKernel::Extend extend) {
  benchmark::RegisterBenchmark(("crc32c/one_size/" + name).c_str(), one_size, extend)
      ->ArgsProduct({{8, 16, 32, 64, 128, 258, 512, 1024, 3277, 10000, 64 << 10, 1 << 20}});
  benchmark::RegisterBenchmark(("crc32c/chained/" + name).c_str(), chained, extend)
      ->ArgsProduct({{8, 16, 32, 64, 128, 258, 1024}});
  benchmark::RegisterBenchmark(("crc32c/records/" + name).c_str(), records, extend)
      ->Args({16, 64})
      ->Args({64, 256})
      ->Args({258, 258})
      ->Args({245, 270})
      ->Args({16, 1024})
      ->Args({500, 1000})
      ->Args({2900, 3600});
}

}  // namespace

int main(int argc, char** argv) {
  for (const Crc32cKernel& kernel : crc32c_kernels()) {
    if (!kernel.supported()) continue;
    add_extend(kernel.name, kernel.extend);
    benchmark::RegisterBenchmark((std::string("crc32c/u64/") + kernel.name).c_str(), of_u64,
                                 kernel.of_u64);
    benchmark::RegisterBenchmark((std::string("crc32c/copy/") + kernel.name).c_str(), copy,
                                 kernel.copy)
        ->ArgsProduct({{258, 3277, 110000}});
    benchmark::RegisterBenchmark((std::string("crc32c/stream/") + kernel.name).c_str(), copy,
                                 kernel.stream)
        ->ArgsProduct({{258, 3277, 110000}});
    benchmark::RegisterBenchmark((std::string("crc32c/copy_then_crc/") + kernel.name).c_str(),
                                 copy_then_crc, kernel.extend)
        ->ArgsProduct({{258, 3277, 110000}});
  }
  if (const char* path = std::getenv("GOOGLE_CRC32C_LIBRARY")) {
    void* library = dlopen(path, RTLD_NOW);
    void* symbol = library == nullptr ? nullptr : dlsym(library, "crc32c_extend");
    if (symbol == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    google_extend = reinterpret_cast<GoogleExtend>(symbol);
    add_extend("google", extend_google);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
