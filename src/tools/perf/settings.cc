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

enum setup_flags : std::uint32_t { flag_allocate = 1, flag_pass_memh = 2, flag_validate = 4, known_flags = 7 };

struct setup_header {
    std::uint32_t test;
    std::uint32_t flags;
    std::uint32_t outstanding;
    std::uint32_t num_methods;
    std::array<std::uint8_t, 8> methods;
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
    settings.test         = static_cast<test_kind>(header.test);
    settings.message_size = header.message_size;
    settings.outstanding  = header.outstanding;
    settings.allocate     = (header.flags & flag_allocate) != 0;
    settings.pass_memh    = (header.flags & flag_pass_memh) != 0;
    settings.validate     = (header.flags & flag_validate) != 0;
    return settings;
}

} // namespace

std::vector<std::byte> encode(const settings& settings, const layout_pair& layouts)
{
    setup_header header{};
    header.test  = static_cast<std::uint32_t>(settings.test);
    header.flags = (settings.allocate ? flag_allocate : 0U) | (settings.pass_memh ? flag_pass_memh : 0U) |
                   (settings.validate ? flag_validate : 0U);
    header.outstanding  = settings.outstanding;
    header.num_methods  = static_cast<std::uint32_t>(settings.chosen.size());
    header.message_size = settings.message_size;
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

std::optional<std::string> refusal(method_kind method, test_kind test, const layout_pair& layouts)
{
    const carrier kind = info_of(test).carried_by;
    if ((kind == carrier::put || kind == carrier::get) &&
        (method == method_kind::datatype || method == method_kind::iov)) {
        return fmt::format("{} puts and gets contiguous memory only: UCP takes {} for tag, stream and active messages",
                           info_of(test).name, method == method_kind::iov ? "lists" : "generic datatypes");
    }
    const std::size_t entries = std::max(attributes(layouts.send).num_blocks, attributes(layouts.receive).num_blocks);
    if (method == method_kind::iov && entries > max_iov_entries) {
        return fmt::format("{} blocks, more than the {} list entries this program gives to UCP", entries,
                           max_iov_entries);
    }
    return std::nullopt;
}

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
    if (settings.validate && attributes(layouts.receive).overlap == UCP_LAYOUT_OVERLAP_SOME) {
        give_up("the receive layout describes some byte twice, so what arrives there is undefined; --no-validate skips "
                "the check");
    }
}

} // namespace ucxl::perf
