// What a listing has said about objects that will probably be opened next, so that opening one of
// them asks for nothing. Any change since the listing is noticed: each read asks for that version.
#pragma once

#include <optional>
#include <string>

#include "core/storage/file_facts.h"

namespace tfrfast {

struct ListedObject {
  FileFacts facts;
  std::string version;  // as the client has described it
};

// These are safe from many threads. A forked child knows of no listing.
void expect_object(const std::string& url, const std::string& access, ListedObject object);
void forget_listed_objects();

// Empty if nothing is known. Each object is handed out once: whoever opens it later wants to know
// what it is then.
std::optional<ListedObject> take_listed_object(const std::string& url, const std::string& access);
// The version or the facts alone. They can be asked for again.
std::optional<std::string> version_of_listed_object(const std::string& url,
                                                    const std::string& access);
std::optional<FileFacts> facts_of_listed_object(const std::string& url, const std::string& access);

}  // namespace tfrfast
