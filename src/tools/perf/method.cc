#include "method.h"

#include "method_pack.h"
#include "rdma_memory.h"
#include "registered_memory.h"
#include "tools/common/value_of.h"

#include <algorithm>
#include <optional>

namespace ucxl::perf
{

namespace
{

bool is_one_sided(const settings& settings)
{
    const carrier kind = info_of(settings.test).carried_by;
    return kind == carrier::put || kind == carrier::get || kind == carrier::atomic;
}

// Stock calls on a window need no work around them.
class window_method : public method
{
public:
    window_method(session& session, image_pair& images, bool pass_memh)
        : method(images), _own_source(map(session, images.source)), _own_destination(map(session, images.destination)),
          _source(_own_source ? *_own_source : *images.source.allocated()),
          _destination(_own_destination ? *_own_destination : *images.destination.allocated()),
          _copied_before(copied(_source) + copied(_destination)), _pass_memh(pass_memh)
    {
    }

    wire_buffer outgoing(unsigned /*slot*/) const override { return buffer(_source); }
    wire_buffer incoming(unsigned /*slot*/) const override { return buffer(_destination); }
    exposed_memory exposed_outgoing() const override { return exposed(_source); }
    exposed_memory exposed_incoming() const override { return exposed(_destination); }
    std::optional<std::uint64_t> copied_bytes() const override
    {
        return copied(_source) + copied(_destination) - _copied_before;
    }

private:
    static std::uint64_t copied(const ucx_layout::window& window)
    {
        ucp_layout_window_attr_t attr{};
        attr.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS;
        if (ucp_layout_window_query(window.get(), &attr) != UCS_OK) {
            tools::give_up("the statistics of a window cannot be had");
        }
        return attr.statistics.bytes_read + attr.statistics.bytes_written;
    }
    // Nothing for memory of the library: peers can share it only through the window that owns it.
    static std::optional<ucx_layout::window> map(session& session, const layout_image& image)
    {
        if (image.allocated() != nullptr) {
            return std::nullopt;
        }
        const tools::held_log log;
        return tools::value_of(ucx_layout::window::map(session.context(), image.layout(), image.bases()), log,
                               "mapping a window");
    }
    wire_buffer buffer(const ucx_layout::window& window) const
    {
        return {.address = window.address(), .count = window.length(), .memh = _pass_memh ? window.memh() : nullptr};
    }
    static exposed_memory exposed(const ucx_layout::window& window)
    {
        return {.memh = window.memh(), .address = reinterpret_cast<std::uintptr_t>(window.address())};
    }

    std::optional<ucx_layout::window> _own_source;
    std::optional<ucx_layout::window> _own_destination;
    const ucx_layout::window& _source;
    const ucx_layout::window& _destination;
    std::uint64_t _copied_before; // a window that was mapped before goes on counting
    bool _pass_memh;
};

class datatype_method : public method
{
public:
    explicit datatype_method(image_pair& images)
        : method(images), _source(create(images.source)), _destination(create(images.destination))
    {
    }

    wire_buffer outgoing(unsigned /*slot*/) const override { return buffer(source(), _source); }
    wire_buffer incoming(unsigned /*slot*/) const override { return buffer(destination(), _destination); }

private:
    static ucx_layout::datatype create(const layout_image& image)
    {
        const tools::held_log log;
        return tools::value_of(ucx_layout::datatype::create(image.layout()), log, "ucp_layout_datatype_create");
    }
    static wire_buffer buffer(const layout_image& image, const ucx_layout::datatype& datatype)
    {
        // One source: its base address. Several sources: the array of them, which UCP only passes on.
        void* const array = const_cast<void*>(static_cast<const void*>(image.bases().data()));
        return {
            .address = image.bases().size() == 1 ? image.bases()[0] : array, .count = 1, .datatype = datatype.get()};
    }

    ucx_layout::datatype _source;
    ucx_layout::datatype _destination;
};

class iov_method : public method
{
public:
    explicit iov_method(image_pair& images)
        : method(images), _source(list(images.source)), _destination(list(images.destination))
    {
    }

    wire_buffer outgoing(unsigned /*slot*/) const override { return buffer(_source); }
    wire_buffer incoming(unsigned /*slot*/) const override { return buffer(_destination); }

private:
    static std::vector<ucp_dt_iov_t> list(const layout_image& image)
    {
        std::vector<ucp_dt_iov_t> entries;
        entries.reserve(image.blocks().size());
        for (const memory_block& block : image.blocks()) {
            entries.push_back({.buffer = block.address, .length = block.length});
        }
        return entries;
    }
    static wire_buffer buffer(const std::vector<ucp_dt_iov_t>& entries)
    {
        return {.address  = const_cast<ucp_dt_iov_t*>(entries.data()),
                .count    = entries.size(),
                .datatype = ucp_dt_make_iov()};
    }

    std::vector<ucp_dt_iov_t> _source;
    std::vector<ucp_dt_iov_t> _destination;
};

// The same bytes in plain buffers.
class contig_method : public method
{
public:
    contig_method(session& session, std::unique_ptr<image_pair> images, bool registered)
        : method(*images), _images(std::move(images))
    {
        if (registered) {
            _source      = add(session, source());
            _destination = add(session, destination());
        }
    }

    wire_buffer outgoing(unsigned /*slot*/) const override { return buffer(source(), _source); }
    wire_buffer incoming(unsigned /*slot*/) const override { return buffer(destination(), _destination); }
    exposed_memory exposed_outgoing() const override { return exposed(source(), _source); }
    exposed_memory exposed_incoming() const override { return exposed(destination(), _destination); }

    static std::unique_ptr<image_pair> make_images(session& session, std::size_t size)
    {
        const auto image = [&] {
            const tools::held_log log;
            auto plain = ucx_layout::layout::create_contig(1, {.length = size, .layout = nullptr});
            return layout_image::create(session.context(), tools::value_of(std::move(plain), log, "contig"),
                                        image_place::own);
        };
        return std::make_unique<image_pair>(image_pair{.source = image(), .destination = image()});
    }

private:
    static registered_memory add(session& session, const layout_image& image)
    {
        return registered_memory::create(session.context(), image.blocks().front().address, image.packed_length());
    }
    static wire_buffer buffer(const layout_image& image, const registered_memory& memory)
    {
        return {.address = image.blocks().front().address, .count = image.packed_length(), .memh = memory.memh()};
    }
    static exposed_memory exposed(const layout_image& image, const registered_memory& memory)
    {
        return {.memh = memory.memh(), .address = reinterpret_cast<std::uintptr_t>(image.blocks().front().address)};
    }

    std::unique_ptr<image_pair> _images;
    registered_memory _source;
    registered_memory _destination;
};

// The same where at least one end is memory of a network card. The images stand in for that end.
class rdma_method : public method
{
public:
    rdma_method(session& session, std::unique_ptr<image_pair> images, const settings& settings)
        : method(*images), _images(std::move(images)), _source(make_end(session, source(), settings.source_memory())),
          _destination(make_end(session, destination(), settings.destination_memory())), _pass_memh(settings.pass_memh)
    {
    }

    wire_buffer outgoing(unsigned /*slot*/) const override { return buffer(_source); }
    wire_buffer incoming(unsigned /*slot*/) const override { return buffer(_destination); }
    exposed_memory exposed_outgoing() const override { return exposed(_source); }
    exposed_memory exposed_incoming() const override { return exposed(_destination); }

    void publish() override
    {
        for (memory_end* const each : {&_source, &_destination}) {
            if (each->device.memh() != nullptr) {
                each->device.write(0, each->image);
            }
        }
    }
    void collect() override
    {
        if (_destination.device.memh() != nullptr) {
            _destination.device.read(0, _destination.image);
        }
    }

private:
    struct memory_end {
        std::span<std::byte> image;
        registered_memory host;
        rdma_memory device;
    };

    static memory_end make_end(session& session, const layout_image& image, memory_kind kind)
    {
        memory_end made{.image = {image.blocks().front().address, image.packed_length()}, .host = {}, .device = {}};
        if (kind == memory_kind::rdma) {
            made.device = rdma_memory::create(session.own_process(), made.image.size());
        } else {
            made.host = registered_memory::create(session.context(), made.image.data(), made.image.size());
        }
        return made;
    }
    static std::uint64_t address_of(const memory_end& end)
    {
        return end.device.memh() != nullptr ? end.device.address() : reinterpret_cast<std::uintptr_t>(end.image.data());
    }
    static ucp_mem_h memh_of(const memory_end& end)
    {
        return end.device.memh() != nullptr ? end.device.memh() : end.host.memh();
    }
    wire_buffer buffer(const memory_end& end) const
    {
        return {.address = reinterpret_cast<void*>(address_of(end)),
                .count   = end.image.size(),
                .memh    = _pass_memh ? memh_of(end) : nullptr};
    }
    static exposed_memory exposed(const memory_end& end) { return {.memh = memh_of(end), .address = address_of(end)}; }

    std::unique_ptr<image_pair> _images;
    memory_end _source;
    memory_end _destination;
    bool _pass_memh;
};

} // namespace

std::unique_ptr<method> make_method(method_kind kind, session& session, image_pair& images, const settings& settings)
{
    const bool registered = settings.pass_memh || is_one_sided(settings);
    switch (kind) {
    case method_kind::window:
        return std::make_unique<window_method>(session, images, settings.pass_memh);
    case method_kind::datatype:
        return std::make_unique<datatype_method>(images);
    case method_kind::pack:
        return std::make_unique<pack_method>(session, images, settings.outstanding, registered);
    case method_kind::iov:
        return std::make_unique<iov_method>(images);
    case method_kind::contig:
        if (settings.memory.has(memory_kind::rdma)) {
            return std::make_unique<rdma_method>(session, contig_method::make_images(session, settings.message_size),
                                                 settings);
        }
        return std::make_unique<contig_method>(session, contig_method::make_images(session, settings.message_size),
                                               registered);
    }
    tools::give_up("method number {} is unknown", static_cast<unsigned>(kind));
}

} // namespace ucxl::perf
