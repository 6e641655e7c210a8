#include "print_layout.h"

#include "failure.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace ucxl::tools
{

std::string print_layout(const ucx_layout::layout& layout, unsigned what)
{
    char* text              = nullptr;
    std::size_t length      = 0;
    std::FILE* const stream = open_memstream(&text, &length);
    if (stream == nullptr) {
        give_up("out of memory");
    }
    const ucs_status_t status = ucp_layout_print(layout.get(), stream, what);
    std::fclose(stream); // sets text and length
    const std::unique_ptr<char, decltype(&std::free)> owned(text, std::free);
    check(status, "ucp_layout_print");
    std::string result(text, length);
    while (result.ends_with('\n')) {
        result.pop_back();
    }
    return result;
}

} // namespace ucxl::tools
