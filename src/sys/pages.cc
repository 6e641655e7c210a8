#include "pages.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <sys/mman.h>
#include <sys/uio.h>
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

// So that no fork falls into the first call, whose end the child would wait for.
[[gnu::constructor(200)]] static void read_lengths_at_load()
{
    page_length();
    huge_page_length();
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

bool is_readable(const void* start, std::size_t length)
{
    if (length == 0) {
        return true;
    }
    constexpr std::size_t at_once = 64;
    const std::uintptr_t page     = page_length();
    const auto first              = reinterpret_cast<std::uintptr_t>(start);
    const std::uintptr_t number   = (first + length - 1) / page - first / page + 1;
    for (std::uintptr_t done = 0; done < number;) {
        std::array<iovec, at_once> places{};
        std::array<std::byte, at_once> bytes{};
        const std::size_t now = std::min<std::size_t>(at_once, number - done);
        for (std::size_t i = 0; i < now; ++i, ++done) {
            places[i] = {reinterpret_cast<void*>(done == 0 ? first : (first / page + done) * page), 1};
        }
        const iovec copy{bytes.data(), now};
        const ssize_t copied = process_vm_readv(getpid(), &copy, 1, places.data(), now, 0);
        if (copied != static_cast<ssize_t>(now)) {
            return copied < 0 && errno != EFAULT;
        }
    }
    return true;
}

} // namespace ucxl
