#include "device_memory.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ucxl::mlx5
{

namespace
{

constexpr std::uint64_t word_bytes   = 4;
constexpr std::size_t bounce_bytes   = 4096;
constexpr std::uint64_t part_of_word = word_bytes - 1;

// The copies go through it, because libmlx5 reads and writes words on the host side, too.
struct bounce_buffer {
    alignas(8) std::array<std::byte, bounce_bytes> bytes;
};

result<void> copied(const char* action, int error)
{
    return error == 0 ? result<void>() : fail_errno(action, error);
}

result<void> load(ibv_dm* memory, std::uint64_t offset, void* to, std::size_t length)
{
    return copied("reading device memory", ibv_memcpy_from_dm(to, memory, offset, length));
}

result<void> store(ibv_dm* memory, std::uint64_t offset, const void* from, std::size_t length)
{
    return copied("writing device memory", ibv_memcpy_to_dm(memory, offset, from, length));
}

// The memory is mapped write-combining. These are the instructions of rdma-core (util/udma_barrier.h,
// mmio_flush_writes).
void flush_write_combining()
{
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#elif defined(__aarch64__)
    asm volatile("dsb st" ::: "memory");
#else
#error "no instruction known that flushes write-combining buffers"
#endif
}

} // namespace

void device_memory::destroyer::operator()(ibv_dm* memory) const
{
    verbs_destroyer<ibv_free_dm>{}(memory);
}

result<device_memory> device_memory::allocate(ibv_context* context, std::uint64_t length)
{
    ibv_alloc_dm_attr wanted{};
    wanted.length = length;
    device_memory made(ibv_alloc_dm(context, &wanted));
    if (made._memory == nullptr) {
        return fail_errno(std::format("allocating {} bytes on the device", length));
    }
    return made;
}

result<void> device_memory::read(std::uint64_t offset, std::span<std::byte> to) const
{
    bounce_buffer words;
    while (!to.empty()) {
        const std::uint64_t skipped = offset & part_of_word;
        const std::size_t wanted    = std::min(to.size(), bounce_bytes - skipped);
        const std::size_t whole     = (skipped + wanted + part_of_word) & ~part_of_word;
        UCXL_TRY(load(handle(), offset - skipped, words.bytes.data(), whole));
        std::memcpy(to.data(), words.bytes.data() + skipped, wanted);
        offset += wanted;
        to = to.subspan(wanted);
    }
    return {};
}

result<void> device_memory::write(std::uint64_t offset, std::span<const std::byte> from)
{
    if (from.empty()) {
        return {};
    }
    const std::uint64_t first = offset;
    if (const std::uint64_t skipped = offset & part_of_word; skipped != 0) {
        const std::size_t head = std::min<std::size_t>(from.size(), word_bytes - skipped);
        UCXL_TRY(write_part_of_word(offset, from.first(head)));
        offset += head;
        from = from.subspan(head);
    }
    const std::size_t whole = from.size() & ~part_of_word;
    UCXL_TRY(write_words(offset, from.first(whole)));
    if (whole != from.size()) {
        UCXL_TRY(write_part_of_word(offset + whole, from.subspan(whole)));
    }
    return flush(first);
}

result<void> device_memory::write_words(std::uint64_t offset, std::span<const std::byte> from)
{
    bounce_buffer words;
    while (!from.empty()) {
        const std::size_t length = std::min(from.size(), bounce_bytes);
        std::memcpy(words.bytes.data(), from.data(), length);
        UCXL_TRY(store(handle(), offset, words.bytes.data(), length));
        offset += length;
        from = from.subspan(length);
    }
    return {};
}

result<void> device_memory::write_part_of_word(std::uint64_t offset, std::span<const std::byte> from)
{
    const std::uint64_t skipped = offset & part_of_word;
    alignas(word_bytes) std::array<std::byte, word_bytes> word;
    const std::lock_guard guard(*_partial_words);
    UCXL_TRY(load(handle(), offset - skipped, word.data(), word_bytes));
    std::ranges::copy(from, word.begin() + static_cast<std::ptrdiff_t>(skipped));
    UCXL_TRY(store(handle(), offset - skipped, word.data(), word_bytes));
    flush_write_combining(); // before another thread reads the word
    return {};
}

result<void> device_memory::clear(std::uint64_t offset, std::uint64_t length)
{
    alignas(8) static constexpr std::array<std::byte, bounce_bytes> zeros{};
    for (std::uint64_t done = 0; done < length;) {
        const std::uint64_t part = std::min<std::uint64_t>(length - done, zeros.size());
        UCXL_TRY(store(handle(), offset + done, zeros.data(), part));
        done += part;
    }
    return flush(offset);
}

// Reading a word back pushes all writes before it to the device: on PCI Express a read does not pass posted writes
// (PCI Express Base Specification, 2.4.1). Without this a peer that was told by another way than the device could come
// first.
result<void> device_memory::flush(std::uint64_t offset) const
{
    flush_write_combining();
    std::uint32_t word;
    return load(handle(), offset & ~part_of_word, &word, word_bytes);
}

} // namespace ucxl::mlx5
