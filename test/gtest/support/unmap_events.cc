#include "unmap_events.h"

#include <stdexcept>
#include <string>

#include <dlfcn.h>

extern "C" {
#include <ucm/api/ucm.h>
}

namespace ucxl::test
{

namespace
{

constexpr int priority = 1000; // as UCX's registration caches

// Programs are not linked with libucm, which is there wherever libucs is.
template <typename Function>
Function* find(const char* name)
{
    auto* const found = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
    if (found == nullptr) {
        throw std::runtime_error(std::string("this UCX has no ") + name);
    }
    return found;
}

} // namespace

struct unmap_events::handler {
    static void run(ucm_event_type_t, ucm_event_t* event, void* self)
    {
        auto& counted    = *static_cast<unmap_events*>(self);
        const auto start = reinterpret_cast<std::uintptr_t>(event->vm_unmapped.address);
        if (start < counted._end && counted._start < start + event->vm_unmapped.size) {
            ++counted._count;
        }
    }
};

unmap_events::unmap_events(const void* start, std::size_t length)
    : _start(reinterpret_cast<std::uintptr_t>(start)), _end(_start + length)
{
    if (find<decltype(ucm_set_event_handler)>("ucm_set_event_handler")(UCM_EVENT_VM_UNMAPPED, priority, handler::run,
                                                                       this) != UCS_OK) {
        throw std::runtime_error("UCX tells nothing of memory that is unmapped");
    }
}

unmap_events::~unmap_events()
{
    find<decltype(ucm_unset_event_handler)>("ucm_unset_event_handler")(UCM_EVENT_VM_UNMAPPED, handler::run, this);
}

} // namespace ucxl::test
