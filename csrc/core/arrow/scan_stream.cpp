#include "core/arrow/scan_stream.h"

#include <cerrno>
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "core/arrow/column_data.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/base/waiting.h"

namespace tfrfast {
namespace {

constexpr double kSecondsBetweenChecks = 0.1;

void refuse_name(const std::string& path) {
  throw Error(ErrorKind::invalid,
              "'" + path +
                  "' is not UTF-8, and a column of strings can hold nothing else. Rename the file, "
                  "or leave out shard_column.",
              {path, {}, {}});
}

// Makes the dictionary's values: the paths of all shards.
ArrowData shard_names(const ShardSet& shards) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) bytes += shards.slot(i).path().size();
  PooledBuffer offsets((shards.size() + 1) * sizeof(std::int64_t));
  PooledBuffer text(bytes + 1);
  std::size_t used = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    offsets.as<std::int64_t>()[i] = static_cast<std::int64_t>(used);
    const std::string path = shards.slot(i).path();
    path.copy(text.as<char>() + used, path.size());
    if (!is_utf8({text.data() + used, path.size()})) refuse_name(path);
    used += path.size();
  }
  offsets.as<std::int64_t>()[shards.size()] = static_cast<std::int64_t>(used);
  ArrowData names;
  names.length = static_cast<std::int64_t>(shards.size());
  names.buffers.emplace_back();
  names.buffers.emplace_back(std::move(offsets));
  names.buffers.emplace_back(std::move(text));
  return names;
}

// A stream for the C interface, which reports errors as a number and a text.
class ExportedStream {
 public:
  explicit ExportedStream(const ArrowScan& scan) : stream_(scan), check_(scan.check) {}

  const ArrowField& field() const noexcept { return stream_.field(); }

  bool next(ArrowData* out) {
    Checking checking(*this);
    if (Clock::now() - checked_at_ > std::chrono::duration<double>(kSecondsBetweenChecks)) {
      checking.check();  // a stream that never waits would not call the check
    }
    return stream_.next(out);
  }

  const std::string& last_error() const noexcept { return last_error_; }

  // Runs `work` and returns 0, or keeps the error's text and returns its number.
  template <class Work>
  int guard(const Work& work) noexcept {
    try {
      work();
      return 0;
    } catch (const Error& error) {
      return keep(error.what(), error.kind() == ErrorKind::feature  ? EINVAL
                                : error.kind() == ErrorKind::memory ? ENOMEM
                                                                    : EIO);
    } catch (const std::bad_alloc& error) {
      return keep(error.what(), ENOMEM);
    } catch (const std::exception& error) {
      return keep(error.what(), EIO);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  class Checking final : public WaitCheck {
   public:
    explicit Checking(ExportedStream& stream) : stream_(stream) {}
    void check() override {
      stream_.checked_at_ = Clock::now();
      stream_.check_();
    }

   private:
    ExportedStream& stream_;
  };

  int keep(const char* what, int number) noexcept {
    try {
      last_error_ = what;
    } catch (...) {
      last_error_.clear();
    }
    return number;
  }

  ArrowScanStream stream_;
  const std::function<void()> check_;
  Clock::time_point checked_at_ = Clock::now();
  std::string last_error_;
};

ExportedStream& exported(ArrowArrayStream* stream) {
  return *static_cast<ExportedStream*>(stream->private_data);
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  ExportedStream& self = exported(stream);
  return self.guard([&] { export_schema(self.field(), out); });
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  ExportedStream& self = exported(stream);
  *out = {};  // an empty array means the end
  return self.guard([&] {
    ArrowData batch;
    if (self.next(&batch)) export_array(std::move(batch), out);
  });
}

const char* get_last_error(ArrowArrayStream* stream) {
  return exported(stream).last_error().c_str();
}

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<ExportedStream*>(stream->private_data);
  stream->release = nullptr;
}

// The type of a batch: a struct of the columns.
ArrowField scan_field(const std::vector<ScanColumn>& columns) {
  ArrowField all;
  all.format = "+s";
  for (const ScanColumn& column : columns) all.children.push_back(column.field);
  return all;
}

}  // namespace

ArrowScanStream::ArrowScanStream(const ArrowScan& scan)
    : source_(scan.source),
      columns_(scan.columns),
      field_(scan_field(columns_)),
      loader_(source_, scan.plan, scan.loader, scan.features) {
  for (const ScanColumn& column : columns_) {
    if (column.content == ScanColumn::kShard && shard_names_ == nullptr) {
      shard_names_ = std::make_shared<const ArrowData>(shard_names(source_->shards()));
    }
  }
}

bool ArrowScanStream::next(ArrowData* out) {
  if (ended_) return false;
  if (pass_ == nullptr) pass_ = loader_.begin();
  LoadedBatch batch;
  Loader::Wait wait = loader_.wait_next(*pass_, kSecondsBetweenChecks, &batch);
  while (wait == Loader::Wait::timed_out) {
    if (WaitCheck* const check = wait_check()) check->check();
    wait = loader_.wait_next(*pass_, kSecondsBetweenChecks, &batch);
  }
  if (wait != Loader::Wait::ready) {
    ended_ = true;
    loader_.close();
    return false;
  }
  *out = batch_data(std::move(batch));
  return true;
}

ArrowData ArrowScanStream::batch_data(LoadedBatch batch) const {
  const std::size_t rows = batch.rows;
  const std::span<const std::int64_t> numbers{batch.indices.as<std::int64_t>(), rows};
  const auto indices = std::make_shared<PooledBuffer>(std::move(batch.indices));
  ArrowData data;
  data.length = static_cast<std::int64_t>(rows);
  data.buffers.emplace_back();
  for (const ScanColumn& column : columns_) {
    if (column.content == ScanColumn::kRecordNumber) {
      ArrowData& added = data.children.emplace_back();
      added.length = data.length;
      added.buffers.emplace_back();
      added.buffers.emplace_back(indices->data(), indices);
    } else if (column.content == ScanColumn::kShard) {
      data.children.push_back(shards_of(numbers));
    } else if (const ArrowData* same = made_before(column, data.children)) {
      data.children.push_back(ArrowData(*same));
    } else {
      data.children.push_back(
          column_data(std::move(batch.columns.at(column.content)), column.field, numbers));
    }
  }
  return data;
}

// Finds an earlier column with the same content: columns of one feature share their memory.
const ArrowData* ArrowScanStream::made_before(const ScanColumn& column,
                                              const std::vector<ArrowData>& made) const noexcept {
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (columns_[i].content == column.content) return &made[i];
  }
  return nullptr;
}

ArrowData ArrowScanStream::shards_of(std::span<const std::int64_t> numbers) const {
  PooledBuffer places(numbers.size() * sizeof(std::int32_t) + 1);
  std::size_t shard = 0;
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    shard = source_->shard_of(static_cast<std::uint64_t>(numbers[row]), shard);
    places.as<std::int32_t>()[row] = static_cast<std::int32_t>(shard);
  }
  ArrowData data;
  data.length = static_cast<std::int64_t>(numbers.size());
  data.buffers.emplace_back();
  data.buffers.emplace_back(std::move(places));
  data.dictionary = shard_names_;
  return data;
}

void export_scan(const ArrowScan& scan, ArrowArrayStream* out) {
  auto stream = std::make_unique<ExportedStream>(scan);
  *out = {&get_schema, &get_next, &get_last_error, &release_stream, stream.release()};
}

}  // namespace tfrfast
