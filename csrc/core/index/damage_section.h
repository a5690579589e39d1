// The list of damage as a section of an index.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/index/index_format.h"

namespace tfrfast {

std::vector<DamageEntry> damage_entries_of(std::span<const Damage> damage);

// Throws Error stale_index if no shard can have such damage. `path` is the index file's path.
std::vector<Damage> load_damage(const std::string& path, std::span<const DamageEntry> entries);

}  // namespace tfrfast
