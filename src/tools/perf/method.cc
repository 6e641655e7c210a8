#include "method.h"

#include "method_pack.h"
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

// The same bytes in plain buffers, which may be memory of a network card: the images then stand in for it.
class contig_method : public method
{
public:
    struct use_of_handles {
        bool registers; // host memory
        bool passes;    // the handles with each call
    };

    contig_method(session& session, std::unique_ptr<image_pair> images, const settings& settings,
                  const use_of_handles& use)
        : method(*images), _images(std::move(images)),
          _source(make_end(session, source(), settings.source_memory(), use)),
          _destination(make_end(session, destination(), settings.destination_memory(), use)), _passes(use.passes)
    {
    }

    wire_buffer outgoing(unsigned /*slot*/) const override { return buffer(_source); }
    wire_buffer incoming(unsigned /*slot*/) const override { return buffer(_destination); }
    exposed_memory exposed_outgoing() const override { return _source.exposed(); }
    exposed_memory exposed_incoming() const override { return _destination.exposed(); }

    void publish() override
    {
        _source.publish();
        _destination.publish();
    }
    void collect() override { _destination.collect(); }

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
    static end_memory make_end(session& session, const layout_image& image, memory_kind kind, const use_of_handles& use)
    {
        return end_memory::create(session.own_process(), {image.blocks().front().address, image.packed_length()}, kind,
                                  use.registers);
    }
    wire_buffer buffer(const end_memory& end) const
    {
        const exposed_memory memory = end.exposed();
        return {.address = reinterpret_cast<void*>(memory.address),
                .count   = end.size(),
                .memh    = _passes ? memory.memh : nullptr};
    }

    std::unique_ptr<image_pair> _images;
    end_memory _source;
    end_memory _destination;
    bool _passes;
};

} // namespace

image_pair make_images(ucp_context_h context, agreed_run& run)
{
    return {.source = layout_image::create(context, std::move(run.layouts.send), run.test_settings.source_place()),
            .destination =
                layout_image::create(context, std::move(run.layouts.receive), run.test_settings.destination_place())};
}

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
    case method_kind::contig: {
        const bool has_device = settings.memory.has(memory_kind::rdma);
        return std::make_unique<contig_method>(session, contig_method::make_images(session, settings.message_size),
                                               settings,
                                               contig_method::use_of_handles{
                                                   .registers = registered || has_device,
                                                   .passes    = has_device ? settings.pass_memh : registered,
                                               });
    }
    }
    tools::give_up("method number {} is unknown", static_cast<unsigned>(kind));
}

} // namespace ucxl::perf
