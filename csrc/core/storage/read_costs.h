// The time of reads at random places of a file, against the time of a read in order.
#pragma once

#include <optional>

#include "core/storage/stored_file.h"

namespace tfrfast {

struct ReadCosts {
  double random_s = 0;            // a read at random, among as many reads at once as in a batch
  double in_order_s_per_mib = 0;  // a long read
};

// Reads single bytes at random places of the file, and a MiB in order. Takes milliseconds on a fast
// disk, and 0.3 s where reads are slow: they are measured three times, because other programs may
// have kept the storage busy. Returns nothing, after microseconds, if the file is short or mostly
// in memory. Throws Error.
std::optional<ReadCosts> measure_read_costs(const StoredFile& file);

}  // namespace tfrfast
