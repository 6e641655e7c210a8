#include "method_imported.h"

namespace ucxl::perf
{

namespace
{

class imported_method : public method
{
public:
    imported_method(session& session, memory_owner& owner, std::size_t index, image_pair& images)
        : method(images), _owner(owner), _index(index),
          _source(imported_memory::create(session.context(), owner.source_of(index))),
          _destination(imported_memory::create(session.context(), owner.destination_of(index)))
    {
    }

    wire_buffer outgoing(unsigned /*slot*/) const override { return buffer(_owner.source_of(_index), _source); }
    wire_buffer incoming(unsigned /*slot*/) const override
    {
        return buffer(_owner.destination_of(_index), _destination);
    }
    exposed_memory exposed_outgoing() const override { return exposed(_owner.source_of(_index), _source); }
    exposed_memory exposed_incoming() const override { return exposed(_owner.destination_of(_index), _destination); }

    void fill(std::uint64_t message) override { _owner.fill(_index, message); }
    std::string check(std::uint64_t message, std::optional<std::byte> /*last*/) override
    {
        return _owner.check(_index, message);
    }

private:
    static wire_buffer buffer(const exported_memory& exported, const imported_memory& imported)
    {
        return {
            .address = reinterpret_cast<void*>(exported.address), .count = exported.length, .memh = imported.memh()};
    }
    static exposed_memory exposed(const exported_memory& exported, const imported_memory& imported)
    {
        return {.memh = imported.memh(), .address = exported.address};
    }

    memory_owner& _owner;
    std::size_t _index;
    imported_memory _source;
    imported_memory _destination;
};

} // namespace

std::unique_ptr<method> make_imported_method(session& session, memory_owner& owner, std::size_t index,
                                             image_pair& images)
{
    return std::make_unique<imported_method>(session, owner, index, images);
}

} // namespace ucxl::perf
