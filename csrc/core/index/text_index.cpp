#include "core/index/text_index.h"

#include <charconv>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/index/index_state.h"
#include "core/index/opening.h"
#include "core/storage/storage.h"

namespace tfrfast {
namespace {

constexpr std::size_t kFlushBytes = 1 << 20;

std::string read_whole(const std::string& path) {
  const auto file = StoredFile::open(path, IoMode::pread);
  if (file->bytes() > max_memory_bytes()) {
    throw Error(ErrorKind::memory,
                "Text index '" + path + "' has " + std::to_string(file->bytes()) +
                    " bytes, more than memory can hold. Build the index from the shard "
                    "instead: `tfrfast index`.",
                {path, {}, {}});
  }
  std::string text(static_cast<std::size_t>(file->bytes()), '\0');
  file->read(0, reinterpret_cast<std::uint8_t*>(text.data()), text.size());
  return text;
}

bool is_blank(char character) {
  return character == ' ' || character == '\t' || character == '\r';
}

// Takes the next number off `line`. False if no number comes next.
bool take_number(std::string_view& line, std::uint64_t* number) {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), *number);
  if (failure != std::errc()) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  return line.empty() || is_blank(line.front());
}

bool only_blanks(std::string_view line) {
  for (const char character : line) {
    if (!is_blank(character)) return false;
  }
  return true;
}

[[noreturn]] void refuse(const std::string& path, std::size_t line, const std::string& what) {
  throw Error(ErrorKind::invalid,
              "Text index '" + path + "', line " + std::to_string(line) + ": " + what +
                  " Build the index from the shard instead: `tfrfast index`.",
              {path, {}, {}});
}

}  // namespace

void export_text_index(const ShardIndex& index, const std::string& path) {
  if (index.facts().compression != Compression::none) {
    throw Error(ErrorKind::invalid,
                "'" + path +
                    "' would index a compressed shard, whose records no text index can "
                    "place. Convert the shard first: `tfrfast shuffle`.",
                {path, {}, {}});
  }
  const auto file = publish_file(path);
  file->keep_permissions();
  std::string lines;
  for (std::uint64_t number = 0; number < index.record_count(); ++number) {
    const Frame frame = index.frame(number);
    lines += std::to_string(frame.offset) + " " +
             std::to_string(frame.payload_bytes + kFrameOverhead) + "\n";
    if (lines.size() >= kFlushBytes) file->append(lines.data(), lines.size()), lines.clear();
  }
  file->append(lines.data(), lines.size());
  file->commit(true);
}

std::shared_ptr<const ShardIndex> import_text_index(const std::string& path,
                                                    const std::shared_ptr<const StoredFile>& file) {
  if (const Compression found = detect_compression(*file); found != Compression::none) {
    refuse(path, 0,
           "'" + file->path() + "' is " + compression_name(found) +
               "-compressed, and a text index cannot say where to begin inflating.");
  }
  const std::string text = read_whole(path);
  std::vector<std::uint64_t> offsets;
  std::uint64_t end = 0;
  std::size_t line_number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    ++line_number;
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (only_blanks(line)) continue;
    std::uint64_t offset = 0;
    std::uint64_t frame_bytes = 0;
    if (!take_number(line, &offset) || !take_number(line, &frame_bytes) || !only_blanks(line)) {
      refuse(path, line_number, "expected an offset and a length, in decimal.");
    }
    if (offset != end) {
      refuse(path, line_number,
             "the record should begin at byte " + std::to_string(end) +
                 ", where the one before it ends, not at " + std::to_string(offset) + ".");
    }
    if (frame_bytes < kFrameOverhead || frame_bytes > file->bytes() - end) {
      refuse(path, line_number,
             "no frame of '" + file->path() + "' at byte " + std::to_string(offset) + " can have " +
                 std::to_string(frame_bytes) + " bytes.");
    }
    offsets.push_back(offset);
    end += frame_bytes;
  }
  if (end != file->bytes()) {
    refuse(path, line_number,
           "the last record ends at byte " + std::to_string(end) + ", but '" + file->path() +
               "' has " + std::to_string(file->bytes()) + " bytes.");
  }
  offsets.push_back(end);
  const bool settled = file->await_settled();
  auto index = index_of(*file, Compression::none, walk_shard(file), settled);
  if (!index->damage().empty() || index->copy_offsets() != offsets) {
    refuse(path, line_number, "'" + file->path() + "' has no such records.");
  }
  return index;
}

}  // namespace tfrfast
