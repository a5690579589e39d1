// The functions that Python calls directly, through ctypes. A dataset is planned when it is made,
// outside of any graph.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/foreign_call.h"
#include "core/base/memory.h"
#include "core/index/damage_in_words.h"
#include "core/storage/remote/remote_client.h"
#include "core/storage/storage_options.h"
#include "tensorflow/c_api.h"
#include "tensorflow/kernel_call.h"
#include "tensorflow/orders.h"
#include "tensorflow/source.h"

#define TFRFAST_CALL extern "C" __attribute__((visibility("default")))

namespace {

using namespace tfrfast;
using namespace tfrfast::tensorflow;

enum Flag : std::int64_t { build_indexes = 1, skip_damage = 2, beside = 4 };
constexpr unsigned kCompressionShift = 3;  // above the flags

// Keeps a source open as long as Python holds the plan.
struct OpenPlan {
  std::string text;
  std::shared_ptr<const Source> source;
  std::string damage;  // the first structural damage, as an error; empty if none
};

std::vector<std::string> split_names(const char* names, std::size_t bytes) {
  std::vector<std::string> paths;
  for (std::size_t at = 0; at < bytes; at += paths.back().size() + 1) {
    paths.emplace_back(names + at);
  }
  return paths;
}

std::string first_damage(const ShardSet& shards) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const IndexedShard* const opened = shards.slot(i).opened();
    if (opened == nullptr) continue;  // a shard with damage is always open
    for (const Damage& damage : opened->index->damage()) {
      if (is_clean_end(damage)) continue;
      try {
        throw_damage(*opened, damage);
      } catch (const Error& error) {
        return encode_error(error);
      }
    }
  }
  return "";
}

// Keeps the opened records, for graphs that read `spec`.
OpenPlan* keep_open(SourceSpec spec, const std::shared_ptr<const RecordSource>& records) {
  auto plan = std::make_unique<OpenPlan>();
  plan->damage = spec.skip_damage ? "" : first_damage(records->shards());
  plan->source = adopt_source(std::move(spec), records);
  plan->text = plan->source->spec().encode();
  return plan.release();
}

OpenPlan* open_plan(const std::vector<std::string>& paths, std::int64_t flags,
                    std::string_view storage, const OpeningProgress& progress) {
  SourceSpec spec;
  spec.planned = true;
  spec.skip_damage = (flags & skip_damage) != 0;
  spec.compression = compression_of_code(flags >> kCompressionShift);
  spec.storage = StorageOptions::decode(storage);
  ShardSetOptions options = shard_options(spec);
  if ((flags & build_indexes) == 0) options.index.use = IndexUse::proven;
  if ((flags & beside) != 0) options.index.use = IndexUse::beside;
  const auto shards = ShardSet::open(paths, options, progress);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    spec.shards.push_back({paths[i], shards->slot(i).file_bytes(), shards->slot(i).record_count()});
  }
  const ReadOptions how{spec.verify, spec.skip_damage};
  return keep_open(std::move(spec), std::make_shared<const Reader>(shards, how));
}

OpenPlan* open_described(std::string_view description, const OpeningProgress& progress) {
  SourceSpec spec = SourceSpec::decode(description);
  const auto records = open_records(spec, progress);
  return keep_open(std::move(spec), records);
}

std::int64_t int64_of(std::uint64_t number) noexcept {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(number, kMax));
}

using Progress = int (*)(std::uint64_t, std::uint64_t);

void copy_text(const std::string& text, char* out, std::size_t capacity) {
  const std::size_t count = std::min(text.size(), capacity - 1);
  std::memcpy(out, text.data(), count);
  out[count] = '\0';
}

// Returns the plan that open(progress) opens. If that fails, fills in `error` and returns null.
template <class Open>
OpenPlan* opened_or_null(Progress progress, char* error, std::size_t error_capacity,
                         const Open& open) noexcept {
  try {
    OpeningProgress report;
    if (progress != nullptr) {
      report = [progress](std::uint64_t done, std::uint64_t all) {
        // ctypes takes the GIL inside `progress`. A program that exits never gives the GIL.
        const int interrupted = call_foreign([&] { return progress(done, all); });
        if (interrupted != 0) throw Error(ErrorKind::closed, "Opening was interrupted.");
      };
    }
    return open(report);
  } catch (const Error& failure) {
    copy_text(encode_error(failure), error, error_capacity);
  } catch (const std::exception& failure) {
    copy_text(encode_error(Code::internal, failure.what()), error, error_capacity);
  }
  print_warnings();
  return nullptr;
}

}  // namespace

// Opens the shards in `names`, where a null ends each name. On failure, writes "<code> <message>"
// to `error` and returns null. Without `build_indexes`, fails if an index is missing, or needs a
// walk as proof. With `beside`, only indexes beside the shards count, and none is built. `storage`
// holds the options of URLs' storage. `progress` may be null. If `progress` returns nonzero,
// opening ends.
TFRFAST_CALL OpenPlan* tfrfast_open_plan(const char* names, std::size_t bytes, std::int64_t flags,
                                         const char* storage, std::size_t storage_bytes,
                                         Progress progress, char* error,
                                         std::size_t error_capacity) noexcept {
  return opened_or_null(progress, error, error_capacity, [&](const OpeningProgress& report) {
    return open_plan(split_names(names, bytes), flags, {storage, storage_bytes}, report);
  });
}

// Like tfrfast_open_plan(), for the data of a Reader, by the Reader's description.
TFRFAST_CALL OpenPlan* tfrfast_open_described(const char* description, std::size_t bytes,
                                              Progress progress, char* error,
                                              std::size_t error_capacity) noexcept {
  return opened_or_null(progress, error, error_capacity, [&](const OpeningProgress& report) {
    return open_described({description, bytes}, report);
  });
}

TFRFAST_CALL void tfrfast_close_plan(OpenPlan* plan) noexcept {
  delete plan;
}

// Keeps a source without a plan, and the files that it opens, until tfrfast_close_plan(). Null if
// memory is short.
TFRFAST_CALL OpenPlan* tfrfast_keep_open(const char* text, std::size_t bytes) noexcept {
  try {
    return new OpenPlan{"", open_source({text, bytes}), ""};
  } catch (const std::exception&) {
    return nullptr;
  }
}

TFRFAST_CALL const char* tfrfast_plan_source(const OpenPlan* plan, std::size_t* bytes) noexcept {
  *bytes = plan->text.size();
  return plan->text.data();
}

TFRFAST_CALL const char* tfrfast_plan_damage(const OpenPlan* plan) noexcept {
  return plan->damage.c_str();
}

// Returns the count of these numbers, and writes them if `sizes` has space for all: the number of
// records, the bytes of all files, as stored and uncompressed, and the records of each file.
TFRFAST_CALL std::size_t tfrfast_plan_sizes(const OpenPlan* plan, std::int64_t* sizes,
                                            std::size_t space) noexcept {
  const ShardSet& shards = plan->source->shard_set();
  const std::size_t count = 3 + shards.size();
  if (space < count) return count;
  std::uint64_t file_bytes = 0;
  std::uint64_t stream_bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    file_bytes = add_or_max(file_bytes, shards.slot(i).file_bytes());
    stream_bytes = add_or_max(stream_bytes, shards.slot(i).stream_bytes());
    sizes[3 + i] = int64_of(shards.slot(i).record_count());
  }
  sizes[0] = int64_of(shards.record_count());
  sizes[1] = int64_of(file_bytes);
  sizes[2] = int64_of(stream_bytes);
  return count;
}

// Writes the records, bytes and batches that the steps of an encoded Plan have made so far.
TFRFAST_CALL void tfrfast_plan_counts(const OpenPlan* plan, const char* order, std::size_t bytes,
                                      std::int64_t* counts) noexcept {
  try {
    const LoadCounts& made = plan->source->counts_of({order, bytes});
    counts[0] = static_cast<std::int64_t>(made.records);
    counts[1] = static_cast<std::int64_t>(made.bytes);
    counts[2] = static_cast<std::int64_t>(made.batches);
  } catch (const std::exception&) {
    std::fill_n(counts, 3, 0);  // memory is short
  }
}

// The number of steps of a sequence over all files. If the index is damaged, returns 1, and that
// step fails with the reason.
TFRFAST_CALL std::int64_t tfrfast_plan_step_count(const OpenPlan* plan, const char* sequence,
                                                  std::size_t bytes) noexcept {
  try {
    const auto decoded = std::make_shared<const Sequence>(Sequence::decode({sequence, bytes}));
    return Share(plan->source, {}, decoded).batch_count();
  } catch (const std::exception&) {
    return 1;
  }
}

// The table through which a client makes requests for URLs (core/storage/remote/remote_client.h).
TFRFAST_CALL const void* tfrfast_remote_client_table() noexcept {
  return &client_table();
}

TFRFAST_CALL void tfrfast_hand_out_views(int yes) noexcept {
  hand_out_views(yes != 0);
}
