// What a function prints into a stream. Example:
//     printed_text([](FILE* stream) { check_ok(ucp_layout_print_windows(0, stream), "ucp_layout_print_windows"); })
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace ucxl::test
{

template <typename Print>
std::string printed_text(Print&& print)
{
    struct memory_stream {
        char* text         = nullptr;
        std::size_t length = 0;
        std::FILE* stream  = open_memstream(&text, &length);

        ~memory_stream()
        {
            std::fclose(stream);
            std::free(text);
        }
    } memory;
    print(memory.stream);
    std::fflush(memory.stream);
    return {memory.text, memory.length};
}

} // namespace ucxl::test
