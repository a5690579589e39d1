// Remembers a listing's facts about objects, so that opening a listed object needs no request.
// Reading notices any change since the listing: each read requests the listed version.
#pragma once

#include <optional>
#include <string>

#include "core/storage/file_facts.h"

namespace tfrfast {

struct ListedObject {
  FileFacts facts;
  std::string version;  // as the client described it
};

// Safe from many threads. A forked child has no listed objects.
void expect_object(const std::string& url, const std::string& access, ListedObject object);
void forget_listed_objects();

std::optional<ListedObject> listed_object(const std::string& url, const std::string& access);
// Returns the listed object once. Empty if unknown, or taken before: a later opening should request
// the present facts.
std::optional<ListedObject> take_listed_object(const std::string& url, const std::string& access);

}  // namespace tfrfast
