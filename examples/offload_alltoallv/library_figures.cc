#include "library_figures.h"

#include "examples/common/check.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <ranges>
#include <string>
#include <ucp_layout.h>

namespace examples
{

static std::string printed_figures()
{
    char* text         = nullptr;
    std::size_t length = 0;
    std::FILE* stream  = open_memstream(&text, &length);
    if (stream == nullptr) {
        throw std::bad_alloc();
    }
    const ucs_status_t status = ucp_layout_print_windows(0, stream);
    std::fclose(stream);
    const std::unique_ptr<char, decltype(&std::free)> owned(text, std::free);
    check(status, "ucp_layout_print_windows");
    return {text, length};
}

std::uint64_t library_figure(std::string_view name)
{
    std::uint64_t sum = 0;
    for (const auto line : std::views::split(printed_figures(), '\n')) {
        std::string text(line.begin(), line.end());
        text.erase(0, text.find_first_not_of(' '));
        if (text.starts_with(name) && text[name.size()] == ' ') {
            sum += std::strtoull(text.c_str() + name.size(), nullptr, 10);
        }
    }
    return sum;
}

} // namespace examples
