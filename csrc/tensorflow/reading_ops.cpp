#include "tensorflow/reading_ops.h"

#include <algorithm>
#include <utility>

#include "core/storage/storage_options.h"

namespace tfrfast::tensorflow {
namespace {

// The outputs after the columns.
constexpr int kFacts = 3;

WireBytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

void write_strings(KernelCall& call, int output, const ReadBatch& read) {
  TString* out = call.allocate_strings(output, read.rows.size()).data();
  for (const GoodRows& piece : read.pieces) {
    write_shared_strings(
        out, piece.rows.size(), [&](std::size_t i) { return piece.payloads[i]; }, piece.memory);
    out += piece.rows.size();
  }
}

// Writes the columns of a batch from output `next` on. Returns the number after the last output.
int write_batch(KernelCall& call, int next, ReadBatch& read, const Decoders* decoders) {
  if (decoders == nullptr) {
    write_strings(call, next, read);
    return next + 1;
  }
  if (read.columns.empty()) read.columns = decoders->no_rows();
  return write_columns(call, next, decoders->features(), std::move(read.columns));
}

// Reads a batch. Errors are results, unless they are the graph's.
ReadBatch read_or_tell(const Request& request, std::int64_t number, const Decoders* decoders,
                       BatchRows& batch) {
  try {
    batch = request.rows(number);
    return read_batch(batch, decoders);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid) throw;
    ReadBatch none;
    none.troubles.push_back({0, encode_error(error)});
    return none;
  }
}

std::shared_ptr<const Decoders> decoders_of(ReadingKernel& kernel, std::string_view features) {
  return features.empty() ? nullptr : kernel.decoders.get(features);
}

// The records of a block, if batches have no size.
constexpr std::int64_t kBlockRows = 4096;
constexpr std::uint64_t kBlockBytes = 1 << 20;
// One step passes over so many bytes, at first. Each next step passes over twice as many.
constexpr std::uint64_t kFirstPieceBytes = 1 << 20;
constexpr std::uint64_t kMaxPieceBytes = 64 << 20;
// The spans of a compressed shard stay in memory until they are read.
constexpr std::uint64_t kCompressedPieceBytes = 2 << 20;
// A step gives at most this many elements.
constexpr std::size_t kMaxElements = 64;
// At most this many bytes are announced, and no more than the iteration has read so far: many
// iterations end early.
constexpr std::uint64_t kAnnouncedBytes = std::uint64_t{128} << 20;
constexpr std::int64_t kFilesAnnounced = 64;

// What one step hands to the next: a batch that has begun, and where the walk is.
struct WalkState {
  std::int64_t pending = 0;  // rows of the batch
  std::uint64_t piece_bytes = kFirstPieceBytes;
  std::uint64_t bytes = 0;  // passed so far
  Cursor begin;
  Cursor here;

  WalkState(std::span<const std::int64_t> numbers, const Wanted& wanted) {
    if (numbers.empty()) {
      here.slots.resize(static_cast<std::size_t>(wanted.slots));
      begin = here;
      return;
    }
    if (numbers.size() < 3) refuse_place();
    pending = numbers[0];
    piece_bytes = static_cast<std::uint64_t>(numbers[1]);
    bytes = static_cast<std::uint64_t>(numbers[2]);
    numbers = numbers.subspan(3);
    begin = Cursor::decode(numbers);
    here = Cursor::decode(numbers);
    const std::int64_t rows = wanted.rows > 0 ? wanted.rows : kBlockRows;
    if (pending < 0 || pending >= rows || piece_bytes == 0 || !numbers.empty() ||
        !has_slots(begin, wanted) || !has_slots(here, wanted)) {
      refuse_place();
    }
  }
  std::vector<std::int64_t> encode() const {
    std::vector<std::int64_t> numbers = {pending, static_cast<std::int64_t>(piece_bytes),
                                         static_cast<std::int64_t>(bytes)};
    begin.encode(numbers);
    here.encode(numbers);
    return numbers;
  }
  static bool has_slots(const Cursor& cursor, const Wanted& wanted) {
    return cursor.slots.size() == static_cast<std::size_t>(wanted.slots);
  }
};

void add_files(Cursor& cursor, std::span<const std::int64_t> told, std::int64_t shard_count) {
  Cursor::FileRun run{told[0], 1, 1};
  if (told[1] > 0) {
    const ShareBounds bounds = bounds_of(files_of(told), shard_count, kEndless);
    cursor.records = {bounds.records.first, bounds.records.stride, 0};
    if (bounds.shards.count <= 0) return;
    run = {bounds.shards.first, bounds.shards.stride, bounds.shards.count};
  }
  if (!cursor.ahead.empty()) {
    Cursor::FileRun& last = cursor.ahead.back();
    if (last.first == Cursor::kEnd) return;
    if (last.first >= 0 && run.first == last.first + last.stride * last.count && run.count == 1) {
      ++last.count;
      return;
    }
  }
  cursor.ahead.push_back(run);
}

struct EncodedBatch {
  std::vector<std::int64_t> numbers;
  std::string error;
};

EncodedBatch batch_of(const Wanted& wanted, const Cursor& begin, const Cursor& end,
                      std::int64_t rows) {
  EncodedBatch batch{WalkedBatch::head(rows, wanted), ""};
  Cursor cursor = begin;
  cursor.opened = end.opened;
  // Only files that the batch reaches matter, and that no other file follows.
  cursor.ahead.clear();
  std::int64_t files = begin.files_ahead() - end.files_ahead();
  for (const Cursor::FileRun& run : begin.ahead) {
    if (files == 0 && run.first >= 0) break;
    cursor.ahead.push_back(run);
    if (files == 0) break;
    cursor.ahead.back().count = std::min(files, run.count);
    files -= cursor.ahead.back().count;
  }
  cursor.encode(batch.numbers);
  return batch;
}

// Passes over a piece. True if the walk has ended.
bool pass_piece(const Source& source, const Wanted& wanted, WalkState& state,
                std::vector<EncodedBatch>& batches) {
  FileWalk walk(source, wanted, state.here);
  const std::int64_t rows = wanted.rows > 0 ? wanted.rows : kBlockRows;
  const auto max_batches = kMaxElements * static_cast<std::size_t>(wanted.group);
  std::uint64_t bytes = 0;
  bool is_over = false;
  while (batches.size() < max_batches && bytes < state.piece_bytes) {
    if (state.pending == 0) {
      state.here.opened.clear();
      state.begin = state.here;
    }
    const std::uint64_t max_bytes = wanted.rows > 0 ? state.piece_bytes - bytes : kBlockBytes;
    FileWalk::Passed passed = walk.pass(rows - state.pending, max_bytes);
    state.pending += passed.rows;
    bytes += passed.bytes;
    const bool is_whole = state.pending == rows || wanted.rows == 0;
    const bool may_be_short = (passed.stop == FileWalk::PassEnd::ended && !wanted.is_full) ||
                              (passed.stop == FileWalk::PassEnd::error && wanted.ends_short);
    if (state.pending > 0 && (is_whole || may_be_short)) {
      batches.push_back(batch_of(wanted, state.begin, state.here, state.pending));
      state.pending = 0;
    }
    if (passed.stop == FileWalk::PassEnd::error) {
      batches.push_back({WalkedBatch::head(0, wanted), std::move(passed.error)});
      state.pending = 0;
    }
    is_over = passed.stop == FileWalk::PassEnd::ended;
    if (is_over || passed.stop == FileWalk::PassEnd::starved) break;
  }
  if (is_over) state.pending = 0;
  state.bytes += bytes;
  const bool is_compressed = source.spec().compression != Compression::none;
  state.piece_bytes =
      std::min(state.piece_bytes * 2, is_compressed ? kCompressedPieceBytes : kMaxPieceBytes);
  return is_over;
}

// Announces the bytes of the records from `cursor` on that are walked through without reading, as
// far as `bytes`.
void announce(const Source& source, const Wanted& wanted, Cursor cursor, std::uint64_t bytes) {
  if (wanted.records.stride > 1 || cursor.records.stride > 1) return;
  // Probably, the next files follow.
  const auto shard_count = static_cast<std::int64_t>(source.shard_count());
  if (!cursor.ahead.empty() && cursor.ahead.back().stride == 1) {
    Cursor::FileRun& last = cursor.ahead.back();
    const std::int64_t left = shard_count - last.first - last.count;
    if (last.first >= 0 && left > 0) last.count += std::min(left, kFilesAnnounced);
  } else if (cursor.ahead.empty() && cursor.slots.front().shard >= 0) {
    const std::int64_t next = cursor.slots.front().shard + 1;
    const std::int64_t left = shard_count - next;
    if (left > 0) cursor.ahead.push_back({next, 1, std::min(left, kFilesAnnounced)});
  }
  std::vector<FileWalk::Range> ranges;
  FileWalk walk(source, wanted, cursor, &ranges);
  std::uint64_t passed = 0;
  while (passed < bytes) {
    const FileWalk::Passed piece = walk.pass(kEndless, bytes - passed);
    passed += piece.bytes;
    if (piece.stop != FileWalk::PassEnd::enough) break;
  }
  for (const FileWalk::Range& range : ranges) {
    range.shard->announce(range.begin, range.end);
  }
}

}  // namespace

void compute_source(KernelCall& call) {
  SourceSpec spec;
  for (const TString& name : call.strings(0)) {
    spec.shards.push_back({std::string(name.read()), 0, 0});
  }
  spec.skip_damage = call.integer(1) != 0;
  spec.compression = compression_of_code(call.integer(2));
  spec.storage = StorageOptions::decode(call.string(3));
  call.set_string(0, spec.encode());
}

void compute_step_count(Requests& requests, KernelCall& call) {
  const std::span<const std::int64_t> files = call.integers(2);
  std::int64_t counted[] = {0, 0};
  if (files.empty() || files.back() != 0) {  // a stride of 0: none
    const auto [share, edition] =
        requests.begin_share(call.string(0), call.string(1), files_of(files));
    counted[0] = share->batch_count();
    counted[1] = edition;
  }
  call.set_integers(0, counted);
}

void compute_read(ReadingKernel& kernel, KernelCall& call) {
  const auto decoders = decoders_of(kernel, call.string(4));
  const Request request =
      kernel.requests.find(call.string(0), call.string(1), call.integers(2), call.strings(3));
  const int room = call.output_count() - kFacts;
  bool is_sound = true;
  std::vector<std::int64_t> good, before;
  std::vector<std::string> errors;
  for (int next = 0; next < room;) {
    const auto number = static_cast<std::int64_t>(good.size());
    BatchRows batch;
    ReadBatch read;
    if (number < request.count) {
      read = read_or_tell(request, number, decoders.get(), batch);
      if (request.is_full && !read.troubles.empty()) throw decode_error(read.error());
      is_sound = is_sound && read.troubles.empty() && !read.rows.empty();
    }
    good.push_back(static_cast<std::int64_t>(read.rows.size()));
    before.push_back(static_cast<std::int64_t>(read.rows_before_error()));
    errors.push_back(read.error());
    next = write_batch(call, next, read, decoders.get());
  }
  call.set_boolean(room, is_sound);
  good.insert(good.begin(), request.count);
  good.insert(good.end(), before.begin(), before.end());
  call.set_integers(room + 1, good);
  TString* out = call.allocate_strings(room + 2, errors.size()).data();
  for (const std::string& error : errors) (out++)->write_copy(error.data(), error.size());
}

void compute_load(ReadingKernel& kernel, KernelCall& call) {
  const auto decoders = decoders_of(kernel, call.string(4));
  const std::span<const std::int64_t> run = call.integers(2);
  std::vector<std::int64_t> place(run.begin(), run.end());
  place.push_back(call.integer(3));
  const bool with_draws = decoders != nullptr && decoders->features().needs_draws();
  const Request request =
      kernel.requests.find(call.string(0), call.string(1), place, {}, with_draws);
  BatchRows batch;
  ReadBatch read = read_or_tell(request, 0, decoders.get(), batch);
  if (!read.rows.empty() && batch.planned.records.empty()) {
    throw Error(ErrorKind::invalid, "A Loader's step needs the plan of a Loader.");
  }
  std::vector<std::int64_t> records;
  std::vector<char> valid;
  for (const std::size_t row : read.rows) {
    records.push_back(batch.records[row]);
    valid.push_back(row < batch.planned.real_rows);
  }
  if (!read.rows.empty()) {
    LoadCounts& counts = batch.source->counts_of(call.string(1));
    counts.records += static_cast<std::uint64_t>(std::count(valid.begin(), valid.end(), 1));
    counts.bytes += read.payload_bytes;
    ++counts.batches;
  }
  const int next = write_batch(call, 0, read, decoders.get());
  call.set_integers(next, records);
  call.set_booleans(next + 1, valid);
  call.set_string(next + 2, read.error());
}

void compute_parse_example(ReadingKernel& kernel, KernelCall& call) {
  std::vector<WireBytes> wires;
  for (const TString& record : call.strings(0)) wires.push_back(bytes_of(record.read()));
  const auto decoders = kernel.decoders.get(call.string(1));
  write_columns(call, 0, decoders->features(),
                decoders->with_one([&](RowDecoder& decoder) { return decoder.decode(wires); }));
}

void compute_walk(Requests& sources, KernelCall& call) {
  const Wanted wanted = wanted_of(call.integers(1));
  const std::span<const std::int64_t> numbers = call.integers(2);
  const std::span<const std::int64_t> told = call.integers(3);
  if (told.size() != 2) refuse_place();
  WalkState state(numbers, wanted);
  const std::shared_ptr<const Source> source = sources.open(call.string(0), numbers.empty());
  const auto shard_count = static_cast<std::int64_t>(source->shard_count());
  add_files(state.begin, told, shard_count);
  add_files(state.here, told, shard_count);

  std::vector<EncodedBatch> batches;
  const Cursor begin = state.here;
  const std::uint64_t bytes_before = state.bytes;
  const bool is_over = pass_piece(*source, wanted, state, batches);
  if (source->is_remote()) {
    announce(*source, wanted, begin,
             state.bytes - bytes_before + std::min(state.bytes, kAnnouncedBytes));
  }
  std::size_t width = 1;
  for (const EncodedBatch& batch : batches) width = std::max(width, batch.numbers.size());
  const auto group = static_cast<std::size_t>(wanted.group);
  const std::size_t groups = (batches.size() + group - 1) / group;

  call.set_integers(0, state.encode());
  // The end has groups without batches.
  const bool goes_on = !is_over || groups > 0;
  const Shape shape = {static_cast<std::int64_t>(groups), goes_on ? wanted.group : 0,
                       static_cast<std::int64_t>(width)};
  const std::size_t count = groups * group * width;
  PooledBuffer memory(std::max<std::size_t>(1, count * sizeof(std::int64_t)));
  auto* const out = memory.as<std::int64_t>();
  std::fill_n(out, count, 0);
  const std::span<TString> errors =
      call.allocate_strings(2, Shape{static_cast<std::int64_t>(groups), wanted.group});
  for (std::size_t i = 0; i < groups * group; ++i) {
    if (i >= batches.size()) {
      out[i * width] = -1;  // no batch
      continue;
    }
    std::copy(batches[i].numbers.begin(), batches[i].numbers.end(), out + i * width);
    errors[i].write_copy(batches[i].error.data(), batches[i].error.size());
  }
  call.set_tensor(1, DataType::int64, shape, std::move(memory));
}

}  // namespace tfrfast::tensorflow
