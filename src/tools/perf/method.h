// One way to move a layout: the buffers of the UCP calls at both ends, and the work of the user around the calls.
//
// Each process has both ends, because a ping-pong goes both ways: outgoing() is the source image, incoming() the
// destination. Slots are the messages in flight; only methods that copy have more than one buffer.
#pragma once

#include "end_memory.h"
#include "layout_image.h"
#include "session.h"
#include "settings.h"

#include <memory>
#include <optional>
#include <vector>

namespace ucxl::perf
{

struct wire_buffer {
    void* address           = nullptr;
    std::size_t count       = 0;
    ucp_datatype_t datatype = ucp_dt_make_contig(1);
    ucp_mem_h memh          = nullptr;
};

struct image_pair {
    layout_image source;
    layout_image destination;
};

// Of the layouts of a run, which it takes.
image_pair make_images(ucp_context_h context, agreed_run& run);

class method
{
public:
    explicit method(image_pair& images) : _images(images) {}
    virtual ~method()                = default;
    method(const method&)            = delete;
    method& operator=(const method&) = delete;

    virtual wire_buffer outgoing(unsigned slot) const = 0;
    virtual wire_buffer incoming(unsigned slot) const = 0;
    // For one-sided tests.
    virtual exposed_memory exposed_outgoing() const { return {}; }
    virtual exposed_memory exposed_incoming() const { return {}; }
    // The memory of the last byte of a message that was put into that slot.
    virtual std::byte* signal_byte(unsigned /*slot*/) const { return _images.destination.last_byte(); }

    // The user's own work. A method that copies must learn of every message, also of one-sided ones.
    virtual bool copies() const { return false; }
    void before_send(unsigned slot)
    {
        for (volatile std::byte* const place : _written) {
            *place = *place;
        }
        pack(slot);
    }
    void after_receive(unsigned slot)
    {
        unpack(slot);
        read_destination();
    }
    // From now on the user writes one byte of each cache line of a message before it is sent, and reads one of each
    // when it has come. The bytes keep their values.
    void work_with_data()
    {
        _written = source().lines();
        _read    = destination().lines();
    }
    // Takes a whole message that UCX holds as plain bytes. On false it is received into incoming().
    bool take(const void* data)
    {
        const bool is_taken = unpack_bytes(data);
        if (is_taken) {
            read_destination();
        }
        return is_taken;
    }

    // Bytes that this process's CPU has moved through the windows so far; nothing for methods without windows.
    virtual std::optional<std::uint64_t> copied_bytes() const { return std::nullopt; }

    // For memory that the CPU cannot touch, for which the images stand in: writes it from them, and reads it into the
    // destination.
    virtual void publish() {}
    virtual void collect() {}

    // The pattern of a message into the source, and nothing into the destination.
    virtual void fill(std::uint64_t message)
    {
        source().fill(message);
        destination().clear();
        publish();
    }
    // As layout_image::check, of the destination.
    virtual std::string check(std::uint64_t message, std::optional<std::byte> last)
    {
        collect();
        return destination().check(message, last);
    }

    layout_image& source() const { return _images.source; }
    layout_image& destination() const { return _images.destination; }

protected:
    virtual void pack(unsigned /*slot*/) {}
    virtual void unpack(unsigned /*slot*/) {}
    virtual bool unpack_bytes(const void* /*data*/) { return false; }

private:
    void read_destination() const
    {
        for (const volatile std::byte* const place : _read) {
            static_cast<void>(*place);
        }
    }

    image_pair& _images;
    std::vector<std::byte*> _written, _read;
};

// images: those of the layouts; the method `contig` makes its own.
std::unique_ptr<method> make_method(method_kind kind, session& session, image_pair& images, const settings& settings);

} // namespace ucxl::perf
