// ucp_layout_datatype_create: a layout as a generic UCP datatype, packed and unpacked by the plan.
#include "repeated_plans.h"
#include "ucs/sys/status.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <unordered_map>

using namespace ucxl;

namespace
{

// One operation: what UCP calls the state between start and finish.
struct transfer {
    const pack_plan* plan;         // of all elements together, or of one element
    std::uint64_t total;           // packed bytes of all elements
    std::int64_t extent;           // from one element to the next, where the plan is of one
    std::byte* base;               // of a layout of one source
    std::vector<std::byte*> bases; // of a layout of several

    base_list first_bases() const { return bases.empty() ? base_list(&base, 1) : base_list(bases); }
};

// Every operation needs a transfer, so those that ended are kept for the next ones of the thread.
class transfer_pool
{
public:
    static transfer_pool& of_thread()
    {
        thread_local transfer_pool pool;
        return pool;
    }

    std::unique_ptr<transfer> take() { return _size > 0 ? std::move(_free[--_size]) : std::make_unique<transfer>(); }

    void give(std::unique_ptr<transfer> done)
    {
        if (_size < _free.size()) {
            _free[_size++] = std::move(done);
        }
    }

private:
    std::array<std::unique_ptr<transfer>, 32> _free;
    std::size_t _size = 0;
};

// fn(bases, offset in the plan, length, bytes done before) over the parts of [offset, offset + length).
template <typename Fn>
void for_each_part(const transfer& of, std::uint64_t offset, std::uint64_t length, Fn&& fn)
{
    const std::uint64_t one = of.plan->packed_length();
    if (one == of.total) {
        fn(of.first_bases(), offset, length, std::uint64_t{0});
        return;
    }
    for (std::uint64_t done = 0; done < length;) {
        const std::uint64_t element = (offset + done) / one;
        const std::uint64_t within  = (offset + done) % one;
        const std::uint64_t part    = std::min(one - within, length - done);
        std::byte* const moved      = of.base + static_cast<std::int64_t>(element) * of.extent;
        fn(base_list(&moved, 1), within, part, done);
        done += part;
    }
}

ucs_status_t set_bases(transfer& to, const layout& of, const void* buffer, std::size_t count)
{
    to.bases.clear();
    if (of.num_sources() == 1) {
        to.base = static_cast<std::byte*>(const_cast<void*>(buffer)); // UCP's start_pack is const, its memory is not
        return UCS_OK;
    }
    if (count > 1) {
        ucs_error("layout datatype: count is %zu, a layout of %u sources takes 1", count, of.num_sources());
        return UCS_ERR_INVALID_PARAM;
    }
    if (count == 1) {
        auto* const* bases = static_cast<std::byte* const*>(buffer);
        to.bases.assign(bases, bases + of.num_sources());
    }
    return UCS_OK;
}

void* start(void* context, const void* buffer, std::size_t count)
{
    auto& plans = *static_cast<repeated_plans*>(context);
    std::unique_ptr<transfer> started;
    guarded("layout datatype", [&] {
        auto state          = transfer_pool::of_thread().take();
        const auto& of      = plans.element_layout();
        ucs_status_t status = set_bases(*state, of, buffer, count);
        if (status != UCS_OK) {
            return status;
        }
        if (__builtin_mul_overflow(of.packed_length(), count, &state->total)) {
            ucs_error("layout datatype: count %zu of %lu bytes each overflows", count, of.packed_length());
            return UCS_ERR_EXCEEDS_LIMIT;
        }
        state->plan   = &plans.get(count);
        state->extent = of.extent();
        started       = std::move(state);
        return UCS_OK;
    });
    return started.release();
}

void* start_pack(void* context, const void* buffer, std::size_t count)
{
    return start(context, buffer, count);
}

void* start_unpack(void* context, void* buffer, std::size_t count)
{
    return start(context, buffer, count);
}

// UCP lets no start fail. An operation that could not start has logged why; it sends nothing, and cannot receive.
std::size_t packed_size(void* state)
{
    return state == nullptr ? 0 : static_cast<const transfer*>(state)->total;
}

std::size_t pack(void* state, std::size_t offset, void* dest, std::size_t max_length)
{
    if (state == nullptr) {
        return 0;
    }
    const auto& of                = *static_cast<const transfer*>(state);
    const std::uint64_t available = of.total - std::min<std::uint64_t>(offset, of.total);
    const std::uint64_t length    = std::min<std::uint64_t>(max_length, available);
    for_each_part(of, offset, length,
                  [&](base_list bases, std::uint64_t within, std::uint64_t part, std::uint64_t done) {
                      of.plan->gather(bases, within, part, static_cast<std::byte*>(dest) + done);
                  });
    return length;
}

ucs_status_t unpack(void* state, std::size_t offset, const void* src, std::size_t length)
{
    if (state == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    const auto& of = *static_cast<const transfer*>(state);
    if (offset > of.total || length > of.total - offset) {
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    for_each_part(of, offset, length,
                  [&](base_list bases, std::uint64_t within, std::uint64_t part, std::uint64_t done) {
                      of.plan->scatter(bases, within, part, static_cast<const std::byte*>(src) + done);
                  });
    return UCS_OK;
}

void finish(void* state)
{
    if (state != nullptr) {
        transfer_pool::of_thread().give(std::unique_ptr<transfer>(static_cast<transfer*>(state)));
    }
}

constexpr ucp_generic_dt_ops_t operations = {start_pack, start_unpack, packed_size, pack, unpack, finish};

// UCP does not tell what context a datatype has, so the plans to release are found here.
struct datatype_table {
    std::mutex lock;
    std::unordered_map<ucp_datatype_t, std::unique_ptr<repeated_plans>> plans;

    // Never destroyed: datatypes may be released by destructors that run later.
    static datatype_table& instance()
    {
        static auto& table = *new datatype_table;
        return table;
    }
};

ucs_status_t create(ucp_layout& layout, ucp_datatype_t* datatype_p)
{
    auto element = layout.plan();
    if (!element) {
        return log_error("ucp_layout_datatype_create", element.error());
    }
    auto plans  = std::make_unique<repeated_plans>(retain(&layout), std::move(*element));
    auto& table = datatype_table::instance();
    const std::lock_guard guard(table.lock);
    ucp_datatype_t made;
    if (ucp_dt_create_generic(&operations, plans.get(), &made) != UCS_OK) {
        return log_no_memory("ucp_layout_datatype_create");
    }
    try {
        table.plans.emplace(made, std::move(plans));
    } catch (...) {
        ucp_dt_destroy(made);
        throw;
    }
    *datatype_p = made;
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_datatype_create(ucp_layout_h layout, ucp_datatype_t* datatype_p)
{
    return guarded(__func__, [&] { return create(*layout, datatype_p); });
}

void ucp_layout_datatype_destroy(ucp_datatype_t datatype)
{
    auto& table = datatype_table::instance();
    const std::lock_guard guard(table.lock);
    if (table.plans.erase(datatype) > 0) {
        ucp_dt_destroy(datatype);
    }
}
