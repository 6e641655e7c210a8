#include "pages.h"

#include <cstdio>

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE // a C library older than the kernel
#define MADV_COLLAPSE 25
#endif

namespace ucxl
{

std::size_t page_length()
{
    static const auto length = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return length;
}

std::uint64_t round_to_pages(std::uint64_t length)
{
    return (length + page_length() - 1) & ~std::uint64_t{page_length() - 1};
}

std::uint64_t huge_page_length()
{
    static const std::uint64_t known = [] {
        unsigned long length = 0;
        if (std::FILE* const file = std::fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re")) {
            if (std::fscanf(file, "%lu", &length) != 1) {
                length = 0;
            }
            std::fclose(file);
        }
        return length;
    }();
    return known;
}

result<void> fill_with_huge_pages(std::byte* start, std::uint64_t length)
{
    const std::uint64_t huge = huge_page_length();
    const auto failed        = [&] {
        return fail(errc::no_memory, std::format("huge pages for {} bytes: {}", length, std::strerror(errno)));
    };
    if (huge == 0) {
        errno = ENOTSUP;
        return failed();
    }
    const auto address = reinterpret_cast<std::uintptr_t>(start);
    std::byte* first   = start + (0 - address) % huge;
    std::byte* end     = start + length - (address + length) % huge;
    if (first >= end) {
        return {};
    }
    // Where the kernel takes this advice, the next step allocates huge pages at once.
    madvise(first, static_cast<std::size_t>(end - first), MADV_HUGEPAGE);
    // The kernel leaves out parts that have no page yet.
    for (std::byte* part = first; part != end; part += huge) {
        if (madvise(part, page_length(), MADV_POPULATE_READ) != 0) {
            return failed();
        }
    }
    return madvise(first, static_cast<std::size_t>(end - first), MADV_COLLAPSE) == 0 ? result<void>() : failed();
}

} // namespace ucxl
