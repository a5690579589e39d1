#include "core/storage/remote/listed_objects.h"

#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/base/fork.h"

namespace tfrfast {
namespace {

using Objects = std::unordered_map<std::string, ListedObject>;

constinit std::mutex listed_mutex;
constinit Objects* the_objects = nullptr;  // never destroyed: threads may open objects at exit

std::mutex& mutex_of_listed() {
  return listed_mutex;
}

void forget_in_child() noexcept {
  if (the_objects != nullptr) the_objects->clear();
}

[[maybe_unused]] const int kListingGuarded = make_fork_wait_for<mutex_of_listed, forget_in_child>();

// No URL contains a line break. A listing is independent of caches.
std::string key_of(const std::string& url, const std::string& access) {
  return url + "\n" + access;
}

}  // namespace

void expect_object(const std::string& url, const std::string& access, ListedObject object) {
  std::string key = key_of(url, access);
  const std::lock_guard lock(listed_mutex);
  if (the_objects == nullptr) the_objects = new Objects;
  the_objects->insert_or_assign(std::move(key), std::move(object));
}

void forget_listed_objects() {
  Objects forgotten;  // destroyed without the lock
  const std::lock_guard lock(listed_mutex);
  if (the_objects != nullptr) forgotten.swap(*the_objects);
}

std::optional<ListedObject> listed_object(const std::string& url, const std::string& access) {
  const std::string key = key_of(url, access);
  const std::lock_guard lock(listed_mutex);
  if (the_objects == nullptr) return {};
  const auto found = the_objects->find(key);
  return found == the_objects->end() ? std::nullopt : std::optional(found->second);
}

std::optional<ListedObject> take_listed_object(const std::string& url, const std::string& access) {
  const std::string key = key_of(url, access);
  Objects::node_type taken;
  const std::lock_guard lock(listed_mutex);
  if (the_objects != nullptr) taken = the_objects->extract(key);
  if (taken.empty()) return {};
  return std::move(taken.mapped());
}

}  // namespace tfrfast
