// ucp_layout_pack and ucp_layout_unpack.
#include "ucs/layout/wire.h"
#include "handle.h"
#include "ucs/sys/status.h"

using namespace ucxl;

namespace
{

ucs_status_t pack(const layout& of, void* buffer, std::size_t& length)
{
    const std::size_t needed = wire_length(of);
    if (length < needed) {
        ucs_error("ucp_layout_pack: the buffer has %zu bytes, the wire form needs %zu", length, needed);
        return UCS_ERR_BUFFER_TOO_SMALL;
    }
    const auto written = pack_wire(of, std::span(static_cast<std::byte*>(buffer), length));
    if (!written) {
        return log_error("ucp_layout_pack", written.error());
    }
    length = *written;
    return UCS_OK;
}

ucs_status_t unpack(std::span<const std::byte> from, ucp_layout_h* layout_p)
{
    auto made = unpack_wire(from);
    if (!made) {
        return log_error("ucp_layout_unpack", made.error());
    }
    *layout_p = new ucp_layout(std::move(*made));
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_pack(ucp_layout_h layout, void* buffer, size_t* length_p)
{
    return guarded(__func__, [&] { return pack(*layout->value, buffer, *length_p); });
}

ucs_status_t ucp_layout_unpack(const void* buffer, size_t length, ucp_layout_h* layout_p)
{
    return guarded(__func__,
                   [&] { return unpack(std::span(static_cast<const std::byte*>(buffer), length), layout_p); });
}
