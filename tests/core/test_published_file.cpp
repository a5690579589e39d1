#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/storage/local/folders.h"
#include "core/storage/local/published_file.h"
#include "core/storage/local/write_checks.h"
#include "shard_fixture.h"

using namespace tfrfast;
using namespace tfrfast::testing;

namespace {

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace

TEST_CASE("publish: a file appears whole, under its name only, when it is committed") {
  const TemporaryFolder folder;
  for (const bool durable : {false, true}) {
    PublishedFile file(folder / "file");
    file.append("0123456789", 10);
    CHECK(names_in(folder.path()).count("file") == (durable ? 1 : 0));
    file.append("end", 3);
    file.commit(durable);
    CHECK(read_file(folder / "file") == "0123456789end");
    CHECK(names_in(folder.path()) == std::set<std::string>{"file"});
  }
}

TEST_CASE("publish: what is not committed leaves no trace and spoils nothing") {
  const TemporaryFolder folder;
  write_file(folder / "file", "before");
  {
    PublishedFile file(folder / "file");
    file.append("half", 4);
  }
  CHECK(read_file(folder / "file") == "before");
  CHECK(names_in(folder.path()) == std::set<std::string>{"file"});
}

TEST_CASE("publish: a temporary name is put where no data are expected, if possible") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "data");
  std::filesystem::create_directory(folder / "other");
  // park() is called when the name is taken, and if more files are written than may be open.
  const std::vector<std::string> others = {folder / "other", "/proc", folder / "missing"};
  for (const std::string& other : others) {
    PublishedFile file(folder / "data/file");
    const bool has_no_name = names_in(folder / "data").empty();
    file.keep_temporary_in(other);
    file.append("0123", 4);
    file.park();
    const bool is_there = has_no_name && other == folder / "other";
    CHECK(names_in(folder / "data").empty() == is_there);
    CHECK(names_in(folder / "other").empty() != is_there);
    file.append("4567", 4);
    file.commit(false);
    CHECK(read_file(folder / "data/file") == "01234567");
    CHECK(names_in(folder / "data") == std::set<std::string>{"file"});
    CHECK(names_in(folder / "other").empty());
    std::filesystem::remove(folder / "data/file");
  }
}

TEST_CASE("publish: a forked child cannot touch its parent's file") {
  const TemporaryFolder folder;
  PublishedFile file(folder / "file");
  file.append("01", 2);
  file.park();
  const pid_t child = ::fork();
  if (child == 0) {
    int refused = 0;
    const auto attempt = [&refused](auto&& work) {
      try {
        work();
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::closed) ++refused;
      }
    };
    attempt([&] { file.append("x", 1); });
    attempt([&] { file.flush(); });
    attempt([&] { file.park(); });
    attempt([&] { file.commit(false); });
    ::_exit(refused);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 4);
  file.append("23", 2);
  file.commit(false);
  CHECK(read_file(folder / "file") == "0123");
}

TEST_CASE("publish: a file that replaces one grants no more than that, from the beginning") {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  write_file(path, "old");
  REQUIRE(::chmod(path.c_str(), 0440) == 0);
  PublishedFile file(path);
  file.keep_permissions();
  file.park();  // the file gets a name, and is opened again
  struct stat status;
  for (const std::string& name : names_in(folder.path())) {
    REQUIRE(::stat((folder / name).c_str(), &status) == 0);
    CHECK((status.st_mode & 0777 & ~0600) == 0040);
  }
  file.append("new", 3);
  file.park();
  file.commit(false);
  CHECK(read_file(path) == "new");
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0440);
}

TEST_CASE("publish: a group that cannot be kept loses its rights") {
  if (::geteuid() != 0) return;  // only root can give a file away
  constexpr unsigned kNobody = 65534, kGroup = 54321;
  const TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  for (const auto& [each, kept] :
       {std::pair{0640u, 0600u}, {0644u, 0644u}, {0664u, 0644u}, {0666u, 0666u}, {0604u, 0644u}}) {
    const unsigned mode = each;  // older clangs capture no binding
    const std::string path = folder / std::to_string(mode);
    write_file(path, "old");
    REQUIRE(::chown(path.c_str(), 0, kGroup) == 0);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK(run_in_child([&] {
            if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) {
              return 2;
            }
            PublishedFile file(path);
            file.keep_permissions();
            file.append("new", 3);
            file.commit(false);
            return 0;
          }) == 0);
    CHECK(read_file(path) == "new");
    struct stat status;
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK(status.st_uid == kNobody);
    CHECK(status.st_gid == kNobody);
    CAPTURE(mode);
    CHECK((status.st_mode & 0777) == kept);
  }
}

TEST_CASE("publish: where nothing could be published is told beforehand") {
  const TemporaryFolder folder;
  const auto error_at = [](const std::string& path) {
    return error_of([&] { check_place(path, "Creating", "Do something."); });
  };
  check_place(folder / "free", "Creating", "");
  write_file(folder / "taken", "");
  check_place(folder / "taken", "Creating", "");
  std::filesystem::create_directory(folder / "folder");
  CHECK(error_at(folder / "folder").system_error() == EISDIR);
  CHECK(error_at(folder / "taken/below").system_error() == ENOTDIR);
  CHECK(error_at(folder / "missing/below").system_error() == ENOENT);
  CHECK(error_at(folder / std::string(300, 'n')).system_error() == ENAMETOOLONG);
  CHECK(holds(error_at(folder / "folder").message(),
              "Creating '" + (folder / "folder") + "' failed: Is a directory. Do something."));
  CHECK(names_in(folder.path()) == std::set<std::string>{"folder", "taken"});
  if (::geteuid() != 0) return;
  const auto error_of_nobody = [&](const std::string& path) {
    return run_in_child([&] {
      if (::setuid(65534) != 0) return -1;
      try {
        check_place(path, "Creating", "");
      } catch (const Error& error) {
        return error.system_error();
      }
      return 0;
    });
  };
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  CHECK(error_of_nobody(folder / "free") == EACCES);
  REQUIRE(::chmod(folder.path().c_str(), 01777) == 0);
  CHECK(error_of_nobody(folder / "free") == 0);
  CHECK(error_of_nobody(folder / "taken") == EPERM);  // as in /tmp
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  CHECK(error_of_nobody(folder / "taken") == 0);
}

TEST_CASE("publish: many writers of one name leave one whole file") {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 8; ++writer) {
    writers.emplace_back([&, writer] {
      for (int round = 0; round < 20; ++round) {
        PublishedFile file(folder / "file");
        for (int i = 0; i < 10; ++i)
          file.append(std::string(1000, static_cast<char>('a' + writer)).data(), 1000);
        file.commit(false);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::string bytes = read_file(folder / "file");
  CHECK(bytes == std::string(10'000, bytes[0]));
  CHECK(names_in(folder.path()) == std::set<std::string>{"file"});
}

TEST_CASE("folders: are made with their parents") {
  const TemporaryFolder folder;
  make_folders(folder / "a/b/c");
  make_folders(folder / "a/b/c");
  make_folders(folder / "a/d/");
  CHECK(std::filesystem::is_directory(folder / "a/b/c"));
  CHECK(std::filesystem::is_directory(folder / "a/d"));
  write_file(folder / "file", "");
  CHECK(error_of([&] { make_folders(folder / "file/below"); }).system_error() == ENOTDIR);
}

TEST_CASE("folders: of paths as they come") {
  CHECK(folder_of("name") == ".");
  CHECK(folder_of("/name") == "/");
  CHECK(folder_of("a/b") == "a");
  CHECK(folder_of("/a/b/c") == "/a/b");
  CHECK(folder_of("a//b") == "a");
  CHECK(folder_of("//b") == "/");
  CHECK(folder_of("a///b//c") == "a///b");
  CHECK(folder_of("./b") == ".");
  CHECK(name_of("a//b") == "b");
  CHECK(name_of("b") == "b");
  CHECK(name_of("a/") == "");
}
