// A small file of 64-bit words that processes change together, each through its own mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tfrfast {

// Safe from many threads and processes. If the file is cut short by anyone else, words beyond its
// end are 0, and writing them does nothing.
class SharedWords {
 public:
  // Maps the first `words` words. Null if there is no such file, or if it is shorter.
  static std::unique_ptr<SharedWords> open(const std::string& path, std::size_t words);
  // Makes a file of so many words, all 0, that has its space on the disk. Nobody else may see it
  // before it is complete, so give it a name of its own and rename it. 0, or an errno.
  static int make(const std::string& path, std::size_t words) noexcept;
  ~SharedWords();
  SharedWords(const SharedWords&) = delete;
  SharedWords& operator=(const SharedWords&) = delete;

  std::size_t count() const noexcept { return count_; }
  std::uint64_t load(std::size_t word) const noexcept;
  void store(std::size_t word, std::uint64_t value) const noexcept;
  // False if the word is not `expected`, which becomes what it is.
  bool exchange(std::size_t word, std::uint64_t& expected, std::uint64_t desired) const noexcept;
  // How many of the words from `begin` on are not 0.
  std::uint64_t count_set(std::size_t begin) const noexcept;

 private:
  SharedWords(std::uint64_t* words, std::size_t count) noexcept : words_(words), count_(count) {}

  std::uint64_t* const words_;
  const std::size_t count_;
};

}  // namespace tfrfast
