#include "memory_limit.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <fcntl.h>
#include <unistd.h>

namespace ucxl::heap
{

namespace
{

// Version 1 names as many bytes as fit into pages below 2^63 where there is no limit.
constexpr std::size_t no_limit = std::size_t{1} << 60;

// As much of a file as fits. Empty if it cannot be read.
template <std::size_t Size>
void read_text(const char* path, char (&text)[Size])
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = 0;
    if (file >= 0) {
        length = read(file, text, Size - 1);
        close(file);
    }
    text[length > 0 ? length : 0] = '\0';
}

// Nothing is read where there is a word: "max" is no limit.
std::size_t number_in(const char* folder, const char* name, std::size_t otherwise)
{
    char path[PATH_MAX];
    if (std::snprintf(path, sizeof(path), "%s/%s", folder, name) >= static_cast<int>(sizeof(path))) {
        return otherwise;
    }
    char text[32];
    read_text(path, text);
    char* end         = nullptr;
    const auto number = std::strtoull(text, &end, 10);
    return end == text ? otherwise : number;
}

const char* file_of_limit(bool is_v1)
{
    return is_v1 ? "memory.limit_in_bytes" : "memory.max";
}

const char* file_of_usage(bool is_v1)
{
    return is_v1 ? "memory.usage_in_bytes" : "memory.current";
}

// The name of the group in a line ID:CONTROLLERS:NAME, if the line is of the memory controller (version 1) or of all of
// them (version 2, where CONTROLLERS is empty). Else null.
const char* group_in(char* line, bool is_v1)
{
    char* const controllers = std::strchr(line, ':');
    char* const name        = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
    if (name == nullptr) {
        return nullptr;
    }
    if (!is_v1) {
        return name == controllers + 1 ? name + 1 : nullptr;
    }
    *name           = '\0';
    bool is_memory  = false;
    char* rest      = nullptr;
    const char* one = strtok_r(controllers + 1, ",", &rest);
    for (; one != nullptr; one = strtok_r(nullptr, ",", &rest)) {
        is_memory = is_memory || std::strcmp(one, "memory") == 0;
    }
    *name = ':';
    return is_memory ? name + 1 : nullptr;
}

} // namespace

bool memory_limit::find(const char* groups, const char* mounted)
{
    _bytes = no_limit;
    for (const bool is_v1 : {true, false}) {
        char text[4096];
        read_text(groups, text);
        char* rest = nullptr;
        for (char* line = strtok_r(text, "\n", &rest); line != nullptr; line = strtok_r(nullptr, "\n", &rest)) {
            const char* const group = group_in(line, is_v1);
            char folder[PATH_MAX];
            const int root  = std::snprintf(folder, sizeof(folder), "%s%s", mounted, is_v1 ? "/memory" : "");
            const auto size = sizeof(folder) - static_cast<std::size_t>(root);
            const bool has_it =
                group != nullptr && std::snprintf(folder + root, size, "%s", group) < static_cast<int>(size);
            if (has_it) {
                _is_v1 = is_v1;
                look_at_groups_up_from(folder, static_cast<std::size_t>(root));
            }
        }
        if (_bytes != no_limit) {
            return true;
        }
    }
    return false;
}

// The first `root` characters of the name are those of the group around all.
void memory_limit::look_at_groups_up_from(char* folder, std::size_t root)
{
    for (;;) {
        const std::size_t here = number_in(folder, file_of_limit(_is_v1), no_limit);
        if (here < _bytes) {
            _bytes = here;
            std::strcpy(_folder, folder);
        }
        if (std::strlen(folder) <= root) {
            return;
        }
        *std::strrchr(folder, '/') = '\0';
    }
}

bool memory_limit::is_near() const
{
    const std::size_t limit = number_in(_folder, file_of_limit(_is_v1), no_limit);
    const std::size_t used  = number_in(_folder, file_of_usage(_is_v1), 0);
    return limit < no_limit && (used >= limit || limit - used < limit / 4);
}

} // namespace ucxl::heap
