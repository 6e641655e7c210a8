#include "settings.h"

#include "tools/common/number.h"
#include "tools/common/value_of.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ucxl::perf
{

using tools::attributes;
using tools::give_up;

namespace
{

// Longer lists are refused before UCX allocates memory for each entry on both sides.
constexpr std::size_t max_iov_entries = std::size_t{1} << 20;

enum setup_flags : std::uint32_t {
    flag_allocate  = 1,
    flag_pass_memh = 2,
    flag_validate  = 4,
    flag_live_data = 8,
    known_flags    = 15
};

struct setup_header {
    std::uint32_t test;
    std::uint32_t flags;
    std::uint32_t outstanding;
    std::uint32_t num_methods;
    std::array<std::uint8_t, 8> methods;
    std::uint32_t word_bytes;
    std::uint16_t local_memory;
    std::uint16_t remote_memory;
    std::uint64_t message_size;
    std::uint64_t send_serialized_length;
    std::uint64_t receive_serialized_length;
};
static_assert(methods.size() <= sizeof(setup_header::methods));

void append_serialized(std::vector<std::byte>& into, const ucx_layout::layout& layout, std::size_t length)
{
    const std::size_t begin = into.size();
    into.resize(begin + length);
    tools::check(ucp_layout_serialize(layout.get(), into.data() + begin, &length), "ucp_layout_serialize");
}

ucx_layout::layout take_serialized(std::span<const std::byte>& from, std::uint64_t length)
{
    if (length > from.size()) {
        give_up("the peer's set-up announces a layout of {} bytes, {} are left", length, from.size());
    }
    const tools::held_log log;
    ucx_layout::layout layout =
        tools::value_of(ucx_layout::layout::deserialize(from.first(length)), log, "a layout sent by the peer");
    from = from.subspan(length);
    return layout;
}

settings check_header(const setup_header& header)
{
    settings settings;
    if (header.test >= tests.size()) {
        give_up("the peer asks for test number {}, unknown here", header.test);
    }
    if (header.num_methods > methods.size() || (header.flags & ~std::uint32_t{known_flags}) != 0 ||
        header.outstanding == 0 || header.outstanding > max_outstanding || header.message_size == 0 ||
        header.message_size > UCP_LAYOUT_MAX_LENGTH) {
        give_up("the peer's set-up is out of range: {} methods, flags {:#x}, {} outstanding, {} bytes",
                header.num_methods, header.flags, header.outstanding, header.message_size);
    }
    for (std::uint32_t i = 0; i < header.num_methods; ++i) {
        if (header.methods[i] >= methods.size()) {
            give_up("the peer asks for method number {}, unknown here", header.methods[i]);
        }
        settings.chosen.push_back(static_cast<method_kind>(header.methods[i]));
    }
    if (header.local_memory >= memories.size() || header.remote_memory >= memories.size()) {
        give_up("the peer asks for memory of type {} and {}, unknown here", header.local_memory, header.remote_memory);
    }
    settings.test         = static_cast<test_kind>(header.test);
    settings.message_size = header.message_size;
    settings.outstanding  = header.outstanding;
    settings.allocate     = (header.flags & flag_allocate) != 0;
    settings.pass_memh    = (header.flags & flag_pass_memh) != 0;
    settings.validate     = (header.flags & flag_validate) != 0;
    settings.live_data    = (header.flags & flag_live_data) != 0;
    settings.word_bytes   = header.word_bytes;
    settings.memory       = {.local  = static_cast<memory_kind>(header.local_memory),
                             .remote = static_cast<memory_kind>(header.remote_memory)};
    const bool known_word = header.word_bytes == sizeof(std::uint32_t) || header.word_bytes == sizeof(std::uint64_t);
    if (settings.is_atomic() ? !known_word : header.word_bytes != 0) {
        give_up("the peer asks for {} with words of {} bytes", info_of(settings.test).name, header.word_bytes);
    }
    return settings;
}

} // namespace

std::vector<std::byte> encode(const settings& settings, const layout_pair& layouts)
{
    setup_header header{};
    header.test  = static_cast<std::uint32_t>(settings.test);
    header.flags = (settings.allocate ? flag_allocate : 0U) | (settings.pass_memh ? flag_pass_memh : 0U) |
                   (settings.validate ? flag_validate : 0U) | (settings.live_data ? flag_live_data : 0U);
    header.outstanding   = settings.outstanding;
    header.word_bytes    = settings.word_bytes;
    header.local_memory  = static_cast<std::uint16_t>(settings.memory.local);
    header.remote_memory = static_cast<std::uint16_t>(settings.memory.remote);
    header.num_methods   = static_cast<std::uint32_t>(settings.chosen.size());
    header.message_size  = settings.message_size;
    std::ranges::transform(settings.chosen, header.methods.begin(), [](method_kind m) { return std::uint8_t(m); });
    header.send_serialized_length    = attributes(layouts.send).serialized_length;
    header.receive_serialized_length = attributes(layouts.receive).serialized_length;
    const auto header_bytes          = std::as_bytes(std::span(&header, 1));
    std::vector<std::byte> bytes(header_bytes.begin(), header_bytes.end());
    append_serialized(bytes, layouts.send, header.send_serialized_length);
    append_serialized(bytes, layouts.receive, header.receive_serialized_length);
    if (bytes.size() > max_setup_length) {
        give_up("the layouts need {} bytes on the wire, the limit is {}", bytes.size(), max_setup_length);
    }
    return bytes;
}

agreed_run decode(std::span<const std::byte> bytes)
{
    setup_header header{};
    if (bytes.size() < sizeof(header)) {
        give_up("the peer's set-up has {} bytes, at least {} are expected", bytes.size(), sizeof(header));
    }
    std::memcpy(&header, bytes.data(), sizeof(header));
    bytes                      = bytes.subspan(sizeof(header));
    settings settings          = check_header(header);
    ucx_layout::layout send    = take_serialized(bytes, header.send_serialized_length);
    ucx_layout::layout receive = take_serialized(bytes, header.receive_serialized_length);
    if (!bytes.empty()) {
        give_up("the peer's set-up has {} bytes too many", bytes.size());
    }
    return {.test_settings = std::move(settings), .layouts = {.send = std::move(send), .receive = std::move(receive)}};
}

ucx_layout::layout repeat_to(const ucx_layout::layout& layout, std::uint64_t message_size, const char* side)
{
    const std::uint64_t packed = layout.packed_length();
    if (packed == 0) {
        give_up("the {} layout has no bytes", side);
    }
    if (message_size % packed != 0) {
        give_up("-s {}: not a multiple of the packed length {} of the {} layout", message_size, packed, side);
    }
    const tools::held_log log;
    return tools::value_of(ucx_layout::layout::create_contig(message_size / packed, layout.as_element()), log, side);
}

std::optional<std::string> refusal(method_kind method, const settings& settings, const layout_pair& layouts)
{
    const test_info& test = info_of(settings.test);
    if (settings.memory.has(memory_kind::rdma) && method != method_kind::contig) {
        return "memory of type rdma is contiguous, and only contig uses it";
    }
    if (test.carried_by == carrier::atomic && method != method_kind::window && method != method_kind::contig) {
        return fmt::format("{} works on words where they are: in a window, or in plain memory", test.name);
    }
    if (has_owner(settings.test) && method != method_kind::window && method != method_kind::contig) {
        return fmt::format("{} uses the memory of the host where it is: a window, or plain memory", test.name);
    }
    const bool one_sided = test.carried_by == carrier::put || test.carried_by == carrier::get;
    if (one_sided && (method == method_kind::datatype || method == method_kind::iov)) {
        return fmt::format("{} puts and gets contiguous memory only: UCP takes {} for tag, stream and active messages",
                           test.name, method == method_kind::iov ? "lists" : "generic datatypes");
    }
    const std::size_t entries = std::max(attributes(layouts.send).num_blocks, attributes(layouts.receive).num_blocks);
    if (method == method_kind::iov && entries > max_iov_entries) {
        return fmt::format("{} blocks, more than the {} list entries this program gives to UCP", entries,
                           max_iov_entries);
    }
    return std::nullopt;
}

namespace
{

// Each word lies in one block, at a multiple of its size from the first byte of the source, which is well aligned.
void require_words(const ucx_layout::layout& layout, std::uint32_t word_bytes)
{
    struct search {
        std::vector<std::ptrdiff_t> first; // byte of each source
        std::ptrdiff_t word_bytes;
        bool fits = true;
    } words{.first = {}, .word_bytes = static_cast<std::ptrdiff_t>(word_bytes)};
    for (std::uint32_t source = 0; source < attributes(layout).num_sources; ++source) {
        words.first.push_back(tools::bounds(layout, source).true_lb);
    }
    const auto look = [](void* arg, std::uint32_t source, std::ptrdiff_t offset, std::size_t length) -> ucs_status_t {
        auto* const found             = static_cast<search*>(arg);
        const std::ptrdiff_t distance = offset - found->first[source];
        found->fits                   = found->fits && distance % found->word_bytes == 0 &&
                      static_cast<std::ptrdiff_t>(length) % found->word_bytes == 0;
        return UCS_OK;
    };
    tools::check(ucp_layout_walk(layout.get(), 0, layout.packed_length(), look, &words), "ucp_layout_walk");
    if (!words.fits) {
        give_up("-s {0}: the blocks of the layout are not whole words of {0} bytes at multiples of {0} bytes",
                word_bytes);
    }
}

} // namespace

void require_fitting(const settings& settings, const layout_pair& layouts)
{
    const auto require_length = [&](const ucx_layout::layout& layout, const char* side) {
        if (layout.packed_length() != settings.message_size) {
            give_up("packed lengths differ: the {} layout has {} bytes, the message {}", side, layout.packed_length(),
                    settings.message_size);
        }
    };
    require_length(layouts.send, "send");
    require_length(layouts.receive, "receive");
    if (settings.is_atomic()) {
        require_words(layouts.receive, settings.word_bytes);
    }
    if (settings.validate && attributes(layouts.receive).overlap == UCP_LAYOUT_OVERLAP_SOME) {
        give_up("the receive layout describes some byte twice, so what arrives there is undefined; --no-validate skips "
                "the check");
    }
}

} // namespace ucxl::perf
