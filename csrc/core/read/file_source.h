// A source that reads files itself. Decides what becomes of rows that cannot be delivered.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/read/record_source.h"

namespace tfrfast {

// Immutable except for the list of skipped records. Safe from many threads, and while another
// thread forks.
class FileSource : public RecordSource {
 public:
  using RecordSource::read;
  std::shared_ptr<const RecordBatch> read(const ReadRequest& request) const final;
  Range read_range(std::uint64_t begin, std::uint64_t end, bool is_announced = false) const final;

 protected:
  struct Rows {
    std::shared_ptr<RecordBatch> batch;
    std::vector<BadRow> bad;  // in order
  };
  // Reads the rows of a request. Need not read the rows after the first bad one, unless damage is
  // skipped.
  virtual Rows read_rows(const ReadRequest& request) const = 0;

  // Appends the records that were skipped.
  void append_skipped(std::vector<SkippedBytes>& all) const;

 private:
  bool is_skipped(const BadRow& bad) const noexcept {
    return options().skip_damage && bad.is_damage;
  }
  void leave_out(RecordBatch& batch, const std::vector<BadRow>& bad) const;

  mutable std::map<std::pair<std::string, std::uint64_t>, SkippedBytes> skipped_;  // by place
};

}  // namespace tfrfast
