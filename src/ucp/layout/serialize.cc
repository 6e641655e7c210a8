// ucp_layout_serialize and ucp_layout_deserialize.
#include "layout_table.h"
#include "ucs/layout/wire.h"
#include "ucs/sys/argument.h"

using namespace ucxl;

namespace
{

ucs_status_t serialize(const layout& layout, void* buffer, std::size_t& length)
{
    const std::size_t needed = wire_length(layout);
    if (length < needed) {
        ucs_error("ucp_layout_serialize: the buffer has %zu bytes, the layout needs %zu", length, needed);
        return UCS_ERR_BUFFER_TOO_SMALL;
    }
    const auto written = pack_wire(layout, std::span(static_cast<std::byte*>(buffer), length));
    if (!written) {
        return log_error("ucp_layout_serialize", written.error());
    }
    length = *written;
    return UCS_OK;
}

ucs_status_t deserialize(std::span<const std::byte> bytes, ucp_layout_h* layout_p)
{
    auto created = unpack_wire(bytes);
    if (!created) {
        return log_peer_error("ucp_layout_deserialize", created.error());
    }
    *layout_p = layout_table::instance().share(std::move(*created)).release();
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_serialize(ucp_layout_h layout, void* buffer, size_t* length_p)
{
    return checked(__func__, {{"layout", layout}, {"buffer", buffer}, {"length_p", length_p}},
                   [&] { return serialize(*layout->value, buffer, *length_p); });
}

ucs_status_t ucp_layout_deserialize(const void* buffer, size_t length, ucp_layout_h* layout_p)
{
    return checked(__func__, {{"buffer", buffer}, {"layout_p", layout_p}},
                   [&] { return deserialize(std::span(static_cast<const std::byte*>(buffer), length), layout_p); });
}
