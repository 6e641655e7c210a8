#include "memory_limit.h"

#include "small_file.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ucxl::heap
{

// What a version of control groups calls them.
struct memory_limit::names {
    const char* root; // below the place where they are mounted
    const char* limit;
    const char* usage;
};

namespace
{

// Version 1 names as many bytes as fit into pages below 2^63 where there is no limit.
constexpr std::size_t no_limit = std::size_t{1} << 60;

using path = char[PATH_MAX];

bool put_path(path& joined, const char* folder, const char* name)
{
    return std::snprintf(joined, sizeof(joined), "%s/%s", folder, name) < static_cast<int>(sizeof(joined));
}

// Nothing is read where there is a word: "max" is no limit.
std::size_t number_in(const char* file, std::size_t otherwise)
{
    char text[32];
    read_text(file, text);
    char* end         = nullptr;
    const auto number = std::strtoull(text, &end, 10);
    return end == text ? otherwise : number;
}

// In the list that begins here, of names between commas, up to a colon.
bool lists_memory(const char* controllers)
{
    constexpr char memory[]      = "memory";
    constexpr std::size_t length = sizeof(memory) - 1;
    for (const char* one = controllers;; ++one) {
        const std::size_t found = std::strcspn(one, ",:");
        if (found == length && std::strncmp(one, memory, length) == 0) {
            return true;
        }
        one += found;
        if (*one != ',') {
            return false;
        }
    }
}

} // namespace

bool memory_limit::find(const char* groups, const char* mounted)
{
    static constexpr names version_1{"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"};
    static constexpr names version_2{"", "memory.max", "memory.current"};
    _bytes = no_limit;
    // Not on the stack, as what follows: threads with small ones allocate, too.
    static char text[4096];
    read_text(groups, text);
    char* rest = nullptr;
    // ID:CONTROLLERS:GROUP, without controllers in version 2. A controller belongs to one version.
    for (const char* line = strtok_r(text, "\n", &rest); line != nullptr; line = strtok_r(nullptr, "\n", &rest)) {
        const char* const controllers = std::strchr(line, ':');
        const char* const group       = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
        if (group == nullptr) {
            continue;
        }
        const bool is_version_2 = group == controllers + 1;
        if (is_version_2 || lists_memory(controllers + 1)) {
            look_at_groups_up_from(group + 1, mounted, is_version_2 ? version_2 : version_1);
        }
    }
    return _bytes != no_limit;
}

void memory_limit::look_at_groups_up_from(const char* group, const char* mounted, const names& named)
{
    static path folder, limit;
    if (std::snprintf(folder, sizeof(folder), "%s%s%s", mounted, named.root, group) >=
        static_cast<int>(sizeof(folder))) {
        return;
    }
    for (const std::size_t root = std::strlen(mounted) + std::strlen(named.root);;) {
        const std::size_t here = put_path(limit, folder, named.limit) ? number_in(limit, no_limit) : no_limit;
        if (here < _bytes && put_path(_usage, folder, named.usage)) {
            _bytes = here;
            std::strcpy(_limit, limit);
        }
        if (std::strlen(folder) <= root) {
            return;
        }
        *std::strrchr(folder, '/') = '\0';
    }
}

bool memory_limit::is_near() const
{
    const std::size_t limit = number_in(_limit, no_limit);
    const std::size_t used  = number_in(_usage, 0);
    return limit < no_limit && (used >= limit || limit - used < limit / 4);
}

} // namespace ucxl::heap
