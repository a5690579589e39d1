// What messages say about a shard's damage.
#pragma once

#include "core/index/opening.h"

namespace tfrfast {

// Explains structural damage: which record it hit, what was expected and found, what was lost.
[[noreturn]] void throw_damage(const IndexedShard& shard, const Damage& damage);

}  // namespace tfrfast
