#include "core/storage/cache_roster.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <exception>

#include "core/storage/folders.h"

namespace tfrfast {
namespace {

constexpr std::uint64_t kNever = 0;
constexpr std::uint64_t kNoLonger = 1;
constexpr std::size_t kMinWords = 512;

// Where the search for a key begins. `words` is a power of two.
std::size_t first_place(std::uint64_t key, std::size_t words) noexcept {
  const int bits = std::countr_zero(words);
  return static_cast<std::size_t>((key * 0x9e37'79b9'7f4a'7c15U) >> (64 - bits));
}

std::uint64_t room_of_file(std::uint64_t bytes, const CacheLedger& ledger) noexcept {
  const std::uint64_t block = ledger.block_bytes();
  return (bytes + block - 1) / block * block;
}

bool write_all_words(int descriptor, const std::vector<std::uint64_t>& words) noexcept {
  const auto* const from = reinterpret_cast<const std::uint8_t*>(words.data());
  const std::size_t bytes = words.size() * sizeof words[0];
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t put = ::pwrite(descriptor, from + done, bytes - done, static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

enum class Found : std::uint8_t { no, yes, unknown };

Found find_in_roster(int descriptor, std::uint64_t key) noexcept {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) return Found::unknown;
  const std::size_t words = static_cast<std::size_t>(status.st_size) / sizeof key;
  if (!std::has_single_bit(words) || words < kMinWords) return Found::unknown;
  std::array<std::uint64_t, 64> piece;
  std::size_t place = first_place(key, words);
  for (std::size_t seen = 0; seen < words;) {
    const std::size_t count = std::min(piece.size(), words - place);
    const auto bytes = static_cast<ssize_t>(count * sizeof key);
    const auto at = static_cast<off_t>(place * sizeof key);
    if (::pread(descriptor, piece.data(), count * sizeof key, at) != bytes) return Found::unknown;
    for (std::size_t i = 0; i < count; ++i) {
      if (piece[i] == key) return Found::yes;
      if (piece[i] == kNever) return Found::no;
    }
    seen += count;
    place = (place + count) % words;
  }
  return Found::no;
}

}  // namespace

std::unique_ptr<CacheRoster> CacheRoster::make(std::string file, Room room,
                                               const std::vector<std::uint64_t>& keys) noexcept {
  try {
    std::unique_ptr<CacheRoster> made(new CacheRoster(std::move(file), std::move(room)));
    return made->write_anew(keys) ? std::move(made) : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

CacheRoster::~CacheRoster() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool CacheRoster::write_anew(const std::vector<std::uint64_t>& keys) {
  std::vector<std::uint64_t> words(std::max(kMinWords, std::bit_ceil(2 * keys.size() + 1)));
  for (const std::uint64_t key : keys) {
    if (key == kNever || key == kNoLonger) return false;
    std::size_t place = first_place(key, words.size());
    while (words[place] != kNever) place = (place + 1) % words.size();
    words[place] = key;
  }
  // If somebody has removed the folder, the name is another's.
  if (descriptor_ >= 0 && !is_named(descriptor_, file_)) return false;
  CacheLedger& ledger = *room_.ledger;
  const std::uint64_t room = room_of_file(words.size() * sizeof words[0], ledger);
  if (ledger.take(room, room, room_.limit_bytes, false) == 0) return false;
  const std::string fresh = file_ + ".new";
  remove_file(fresh);
  const int made = ::open(fresh.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const std::uint64_t replaced = look_at_name(file_).bytes;
  if (made < 0 || !write_all_words(made, words) || ::rename(fresh.c_str(), file_.c_str()) != 0) {
    if (made >= 0) {
      ::close(made);
      remove_file(fresh);
    }
    ledger.give_back(room);
    return false;
  }
  ledger.give_back(room_of_file(replaced, ledger));
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = made;
  words_ = std::move(words);
  taken_words_ = keys.size();
  return true;
}

// The key's, if it is listed. Otherwise the first that it may have.
std::size_t CacheRoster::place_for(std::uint64_t key) const noexcept {
  std::size_t place = first_place(key, words_.size());
  std::size_t free_place = words_.size();
  for (; words_[place] != kNever; place = (place + 1) % words_.size()) {
    if (words_[place] == key) return place;
    if (words_[place] == kNoLonger && free_place == words_.size()) free_place = place;
  }
  return free_place < words_.size() ? free_place : place;
}

bool CacheRoster::write_word(std::size_t place, std::uint64_t word) noexcept {
  const auto at = static_cast<off_t>(place * sizeof word);
  if (::pwrite(descriptor_, &word, sizeof word, at) != sizeof word) return false;
  words_[place] = word;
  return true;
}

bool CacheRoster::add(std::uint64_t key) noexcept {
  if (key == kNever || key == kNoLonger) return false;
  const std::size_t place = place_for(key);
  if (words_[place] == kNever && (taken_words_ + 1) * 4 > words_.size() * 3) {
    try {
      std::vector<std::uint64_t> keys{key};
      for (const std::uint64_t each : words_) {
        if (each != kNever && each != kNoLonger) keys.push_back(each);
      }
      return write_anew(keys);
    } catch (const std::exception&) {
      return false;
    }
  }
  const bool was_free = words_[place] == kNever;
  if (!write_word(place, key)) return false;
  taken_words_ += was_free;
  return true;
}

void CacheRoster::remove(std::uint64_t key) noexcept {
  const std::size_t place = place_for(key);
  // If it cannot be written, the key stays in use.
  if (words_[place] == key) write_word(place, kNoLonger);
}

void CacheRoster::end() noexcept {
  if (!is_named(descriptor_, file_) || !remove_file(file_)) return;
  room_.ledger->give_back(room_of_file(words_.size() * sizeof words_[0], *room_.ledger));
}

bool CacheRoster::may_list(const std::string& file, std::uint64_t key) noexcept {
  const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (opened < 0) return true;
  const bool found = find_in_roster(opened, key) != Found::no;
  ::close(opened);
  return found;
}

}  // namespace tfrfast
