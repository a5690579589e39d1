// Walks through the records of a source in file order: file after file, or several files in turns.
//
// The state of a walk is a Cursor, a few numbers. A batch is a cursor and a number of rows. So a
// walk first passes over records, one batch after another, and any thread reads a batch by passing
// over the same records again. A checkpoint holds cursors.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/order/progression.h"
#include "tensorflow/reading.h"
#include "tensorflow/source.h"

namespace tfrfast::tensorflow {

// The requested records, and how they are cut into batches.
struct Wanted {
  Progression records;      // of each epoch, counted in the order of the walk
  std::int64_t rows = 0;    // of a batch; 0: blocks of about a mebibyte
  std::int64_t group = 1;   // batches that are read together
  std::int64_t slots = 1;   // files that take turns
  std::int64_t block = 1;   // records of a turn
  bool is_full = false;     // all batches have all rows
  bool ends_short = false;  // rows before an error are a batch; otherwise the error takes them away
  bool repeats = false;     // batches go on from epoch to epoch
};
Wanted wanted_of(std::span<const std::int64_t> numbers);  // throws Error(invalid)

// A place between two records.
struct Cursor {
  struct Slot {
    std::int64_t shard = -1;  // -1: no file; -2: its end is near
    std::uint64_t byte = 0;   // see ShardPlace
    std::uint64_t number = 0;
    std::int64_t version = 0;  // of the file; 0: not opened yet
  };
  // Files that follow: first, first + stride, ..., or the end of an epoch or of all epochs.
  struct FileRun {
    std::int64_t first = 0;
    std::int64_t stride = 1;
    std::int64_t count = 1;
  };
  static constexpr std::int64_t kEpochEnd = -1;
  static constexpr std::int64_t kEnd = -2;

  Progression records{0, 1, 0};  // this process's records of each file; its count does not matter
  std::int64_t passed = 0;       // this process's records in this epoch before the cursor
  std::int64_t found = 0;        // wanted records and errors in this epoch before the cursor
  std::int64_t turn = 0;         // the slot whose turn it is
  std::int64_t left = 0;         // records left in this turn; 0: the turn begins
  std::vector<Slot> slots;
  std::deque<FileRun> ahead;
  // The versions of the files that a batch opens, in order. The walk notes them, and the batch is
  // read from these files alone.
  std::deque<std::int64_t> opened;

  std::int64_t files_ahead() const noexcept;
  void encode(std::vector<std::int64_t>& numbers) const;
  // Takes a cursor off the beginning of `numbers`. Throws Error(invalid).
  static Cursor decode(std::span<const std::int64_t>& numbers);
};

// Moves a cursor. One thread.
class FileWalk {
 public:
  // Bytes of a shard's stream.
  struct Range {
    std::shared_ptr<Source::OpenShard> shard;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  // With `ranges`, adds the places of wanted records there, and is starved by a shard without an
  // index.
  FileWalk(const Source& source, const Wanted& wanted, Cursor& cursor,
           std::vector<Range>* ranges = nullptr)
      : source_(source),
        wanted_(wanted),
        cursor_(cursor),
        ranges_(ranges),
        shards_(cursor.slots.size()) {}

  enum class PassEnd : std::uint8_t {
    enough,
    error,
    starved,  // the next files are not known yet
    ended,
  };
  struct Passed {
    std::int64_t rows = 0;
    std::uint64_t bytes = 0;  // of all passed records
    PassEnd stop = PassEnd::enough;
    std::string error;
  };
  // Passes over wanted records, at most `rows` and about `bytes`, and adds them to `found` unless
  // it is null. Passes over records before the next wanted one in a call of its own.
  Passed pass(std::int64_t rows, std::uint64_t bytes, std::vector<Row>* found = nullptr);
  // The files that were reached, which must outlive the found rows.
  std::vector<std::shared_ptr<const void>> take_files() { return std::move(files_); }

 private:
  enum class Filled : std::uint8_t { yes, no, starved, ended };
  std::int64_t next_wanted() const noexcept;
  Filled fill(Cursor::Slot& slot);
  Filled leave_epoch();
  Filled end_epoch();
  // Opens the file of a slot. `again`: one that another walk has opened.
  std::shared_ptr<Source::OpenShard> open(Cursor::Slot& slot, bool again);
  void next_turn() noexcept;
  void close(Cursor::Slot& slot) noexcept;
  void pass_stretch(Source::OpenShard& shard, Cursor::Slot& slot, std::int64_t rows,
                    std::uint64_t bytes, std::vector<Row>* found, Passed& passed);

  const Source& source_;
  const Wanted& wanted_;
  Cursor& cursor_;
  std::vector<Range>* const ranges_;
  std::vector<std::shared_ptr<Source::OpenShard>> shards_;  // the open file of each slot
  std::vector<std::shared_ptr<const void>> files_;
  std::vector<Frame> frames_;
};

// A batch that a walk has passed over: the number of rows, the rules, and where the rows begin.
struct WalkedBatch {
  std::int64_t rows = 0;  // 0: an error; -1: no batch
  Wanted wanted;
  Cursor cursor;

  explicit WalkedBatch(std::span<const std::int64_t> numbers);  // throws Error(invalid)
  // The numbers before those of the cursor.
  static std::vector<std::int64_t> head(std::int64_t rows, const Wanted& wanted);
};
// Finds the rows again, and the error after them. Throws Error.
BatchRows find_rows(std::shared_ptr<const Source> source, WalkedBatch& walked);

[[noreturn]] void refuse_place();  // throws Error(invalid)

}  // namespace tfrfast::tensorflow
