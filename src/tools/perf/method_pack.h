// What users do today: they copy blocks into a contiguous buffer, send it, and copy its bytes to their places at the
// other end. Every message in flight needs a buffer of its own.
#pragma once

#include "method.h"
#include "pack_loops.h"
#include "registered_memory.h"

namespace ucxl::perf
{

class pack_method : public method
{
public:
    pack_method(session& session, image_pair& images, unsigned slots, bool registered);

    wire_buffer outgoing(unsigned slot) const override { return _outgoing.slot(slot); }
    wire_buffer incoming(unsigned slot) const override { return _incoming.slot(slot); }
    exposed_memory exposed_outgoing() const override { return _outgoing.exposed(); }
    exposed_memory exposed_incoming() const override { return _incoming.exposed(); }
    std::byte* signal_byte(unsigned slot) const override { return _incoming.at(slot) + _incoming.length - 1; }

    bool copies() const override { return true; }

protected:
    void pack(unsigned slot) override { _packing.pack(_outgoing.at(slot)); }
    void unpack(unsigned slot) override { _unpacking.unpack(_incoming.at(slot)); }
    bool unpack_bytes(const void* data) override
    {
        _unpacking.unpack(static_cast<const std::byte*>(data));
        return true;
    }

private:
    struct staging {
        std::size_t length;
        std::size_t distance; // of slots; they do not share cache lines
        anonymous_mapping memory;
        registered_memory registration;

        static staging create(session& session, std::size_t length, unsigned slots, bool registered);
        std::byte* at(unsigned slot) const { return memory.data() + slot * distance; }
        wire_buffer slot(unsigned slot) const
        {
            return {.address = at(slot), .count = length, .memh = registration.memh()};
        }
        exposed_memory exposed() const
        {
            return {.memh          = registration.memh(),
                    .address       = reinterpret_cast<std::uintptr_t>(memory.data()),
                    .slot_distance = distance};
        }
    };

    pack_loops _packing;
    pack_loops _unpacking;
    staging _outgoing;
    staging _incoming;
};

} // namespace ucxl::perf
