// ucp_layout_datatype_create: a layout as a generic UCP datatype, packed and unpacked by a plan.
//
// UCP gives a start no way to fail: whatever start_pack returns is a state, and packed_size and pack have no error
// results (datatype_iter.inl of UCX: ucp_datatype_generic_iter_init, and ucp_datatype_iter_next_pack, whose length
// goes unchecked into the transport's header). So an operation avoids everything that may fail: its state has a fixed
// size, the bases stay the caller's, and without a plan for `count` elements it runs the plan of one element.
#include "repeated_plans.h"
#include "sys/rollback.h"
#include "ucs/layout/walk.h"
#include "ucs/pack/tile.h"
#include "ucs/sys/argument.h"
#include "uct/layout/base/failure.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <pthread.h>

using namespace ucxl;

namespace
{

// What UCP gets as the context of a datatype. Each operation is a user, and so is whoever made the datatype: programs
// release datatypes while operations go on, as MPI lets them.
struct layout_datatype {
    repeated_plans plans;
    ucp_datatype_t value = 0;
    std::atomic<std::size_t> users{1};

    layout_datatype(handle_ptr layout, pack_plan_ptr element) : plans(std::move(layout), std::move(element)) {}

    void add_user() { users.fetch_add(1, std::memory_order_relaxed); }
    // UCP does not look at a datatype again after it has called finish().
    void remove_user()
    {
        if (users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            ucp_dt_destroy(value);
            delete this;
        }
    }
};

// One operation: the state that UCP keeps between start and finish.
struct transfer {
    layout_datatype* datatype;
    const pack_plan* plan;       // for all elements together, or for one element
    std::uint64_t total;         // packed bytes of all elements
    std::int64_t extent;         // from one element to the next, if the plan is for one
    std::byte* base;             // for a layout of one source
    std::byte* const* all_bases; // for a layout of several sources
    bool is_send;
    tile together;

    bool is_one_plan() const { return plan->packed_length() == total; }
    base_list bases() const { return {all_bases == nullptr ? &base : all_bases, plan->source_layout()->num_sources()}; }
    tile::side memory() const { return {*plan, bases(), total}; }
};

// Every operation needs a transfer, so each thread keeps finished ones for reuse. Handlers of exit() and destructors of
// static objects may begin operations, too: the pool of the thread has ended then.
class transfer_pool
{
public:
    static std::unique_ptr<transfer> take()
    {
        auto* const pool = of_thread();
        return pool != nullptr && pool->_size > 0 ? std::move(pool->_free[--pool->_size])
                                                  : std::make_unique<transfer>();
    }

    static void give(std::unique_ptr<transfer> done)
    {
        auto* const pool = of_thread();
        if (pool != nullptr && pool->_size < pool->_free.size()) {
            pool->_free[pool->_size++] = std::move(done);
        }
    }

private:
    ~transfer_pool() { _has_ended = true; }

    static transfer_pool* of_thread()
    {
        if (_has_ended) {
            return nullptr;
        }
        thread_local transfer_pool pool;
        return &pool;
    }

    static thread_local constinit bool _has_ended; // needs no destructor, so it can be read until the thread is gone
    std::array<std::unique_ptr<transfer>, 32> _free;
    std::size_t _size = 0;
};

thread_local constinit bool transfer_pool::_has_ended = false;

// Splits [offset, offset + length) at the borders of elements and calls fn(element, offset in it, length, bytes done
// before) for each part.
template <typename Fn>
void for_each_part(const transfer& moved, std::uint64_t offset, std::uint64_t length, Fn&& fn)
{
    const std::uint64_t one = moved.plan->packed_length();
    for (std::uint64_t done = 0; done < length;) {
        const std::uint64_t within = (offset + done) % one;
        const std::uint64_t part   = std::min(one - within, length - done);
        fn((offset + done) / one, within, part, done);
        done += part;
    }
}

// Calls run(bases, offset in the plan, length, bytes done before) with the plan. Calls move(layout, contiguous offset,
// length) where elements have several sources, because their bases would need an array for every element.
template <typename Run, typename Move>
void for_each_run(const transfer& moved, std::uint64_t offset, std::uint64_t length, Run&& run, Move&& move)
{
    if (moved.is_one_plan()) {
        run(moved.bases(), offset, length, std::uint64_t{0});
        return;
    }
    for_each_part(moved, offset, length,
                  [&](std::uint64_t element, std::uint64_t within, std::uint64_t part, std::uint64_t done) {
                      const std::int64_t distance = static_cast<std::int64_t>(element) * moved.extent;
                      if (moved.all_bases == nullptr) {
                          std::byte* const base = moved.base + distance;
                          run(base_list(&base, 1), within, part, done);
                          return;
                      }
                      for_each_block(*moved.plan->source_layout(), within, part, [&](const placed_block& block) {
                          move(moved.all_bases[block.source] + block.offset + distance, done, block.length);
                          done += block.length;
                      });
                  });
}

// Offsets may also be whole addresses, as of MPI_BOTTOM. The system maps nothing in the first 64 KB.
bool is_missing(const void* buffer, const layout& element)
{
    constexpr std::int64_t first_address = 64 * 1024;
    return buffer == nullptr && (element.num_sources() > 1 || element.bounds(0).true_lb < first_address);
}

// Returns why the operation cannot start, or null.
const char* fill(transfer& started, layout_datatype& datatype, const void* buffer, std::size_t count, bool is_send)
{
    const layout& element = datatype.plans.element_layout();
    if (__builtin_mul_overflow(element.packed_length(), count, &started.total)) {
        return "are one element; the count makes the message too long";
    }
    if (started.total > 0 && is_missing(buffer, element)) {
        return "are one element; the buffer is NULL";
    }
    const bool several = element.num_sources() > 1;
    started.datatype   = &datatype;
    started.plan       = &datatype.plans.get(count);
    started.extent     = element.extent();
    // UCP's start_pack gets a const pointer, but the memory is not const.
    started.base      = several ? nullptr : static_cast<std::byte*>(const_cast<void*>(buffer));
    started.all_bases = several ? static_cast<std::byte* const*>(buffer) : nullptr;
    started.is_send   = is_send;
    started.together.start(started.is_one_plan() ? started.plan->tile_length() : 0);
    return nullptr;
}

// An operation that cannot start sends no byte and ends with UCS_OK: a silent failure. It can receive only an empty
// message; UCP reports any other message as truncated.
void* start(void* context, const void* buffer, std::size_t count, bool is_send)
{
    auto& datatype = *static_cast<layout_datatype*>(context);
    std::unique_ptr<transfer> started;
    const char* reason = "are one element; there is no memory for the state of the operation";
    try {
        started = transfer_pool::take();
        reason  = fill(*started, datatype, buffer, count, is_send);
    } catch (const std::exception&) { // a container throws it without memory
        started.reset();
    }
    if (reason == nullptr) {
        datatype.add_user();
        return started.release();
    }
    report_failure({failure_kind::datatype, is_send ? "send of a layout datatype" : "receive of a layout datatype",
                    reinterpret_cast<std::uintptr_t>(buffer), datatype.plans.element_layout().packed_length(), reason,
                    is_send});
    return nullptr;
}

void* start_pack(void* context, const void* buffer, std::size_t count)
{
    return start(context, buffer, count, true);
}

void* start_unpack(void* context, void* buffer, std::size_t count)
{
    return start(context, buffer, count, false);
}

// An operation that could not start has logged why. It sends an empty message and receives no byte.
std::size_t packed_size(void* state)
{
    return state == nullptr ? 0 : static_cast<const transfer*>(state)->total;
}

std::size_t pack(void* state, std::size_t offset, void* dest, std::size_t max_length)
{
    if (state == nullptr) {
        return 0;
    }
    auto& sent                    = *static_cast<transfer*>(state);
    auto* const to                = static_cast<std::byte*>(dest);
    const std::uint64_t available = sent.total - std::min<std::uint64_t>(offset, sent.total);
    const std::uint64_t length    = std::min<std::uint64_t>(max_length, available);
    if (length < sent.total && sent.together.is_used()) {
        sent.together.read(sent.memory(), offset, length, to);
        return length;
    }
    for_each_run(
        sent, offset, length,
        [&](base_list bases, std::uint64_t within, std::uint64_t part, std::uint64_t done) {
            sent.plan->gather(bases, within, part, to + done);
        },
        [&](const std::byte* described, std::uint64_t done, std::uint64_t part) {
            std::memcpy(to + done, described, part);
        });
    return length;
}

ucs_status_t unpack(void* state, std::size_t offset, const void* src, std::size_t length)
{
    if (state == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    auto& received         = *static_cast<transfer*>(state);
    const auto* const from = static_cast<const std::byte*>(src);
    if (offset > received.total || length > received.total - offset) {
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    if (received.together.is_used()) {
        received.together.write(received.memory(), offset, length, from);
        return UCS_OK;
    }
    for_each_run(
        received, offset, length,
        [&](base_list bases, std::uint64_t within, std::uint64_t part, std::uint64_t done) {
            received.plan->scatter(bases, within, part, from + done);
        },
        [&](std::byte* described, std::uint64_t done, std::uint64_t part) {
            std::memcpy(described, from + done, part);
        });
    return UCS_OK;
}

void finish(void* state)
{
    if (state != nullptr) {
        std::unique_ptr<transfer> ended(static_cast<transfer*>(state));
        layout_datatype* const datatype = ended->datatype;
        if (!ended->is_send) {
            ended->together.flush(ended->memory());
        }
        transfer_pool::give(std::move(ended));
        datatype->remove_user();
    }
}

constexpr ucp_generic_dt_ops_t operations = {start_pack, start_unpack, packed_size, pack, unpack, finish};

// UCP does not tell the context of a datatype, so this table does.
struct datatype_table {
    std::mutex lock;
    std::unordered_map<ucp_datatype_t, layout_datatype*> all;

    // Never destroyed: destructors that run later may release datatypes.
    static datatype_table& instance()
    {
        static auto& table = *[] {
            auto* const made = new datatype_table;
            pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork_in_parent(); },
                           [] { instance().after_fork_in_child(); });
            return made;
        }();
        return table;
    }

private:
    void before_fork()
    {
        lock.lock();
        for (const auto& each : all) {
            each.second->plans.before_fork();
        }
    }

    void after_fork_in_parent()
    {
        for (const auto& each : all) {
            each.second->plans.after_fork_in_parent();
        }
        lock.unlock();
    }

    void after_fork_in_child()
    {
        for (const auto& each : all) {
            each.second->plans.after_fork_in_child();
        }
        lock.unlock();
    }
};

ucs_status_t create(ucp_layout& layout, ucp_datatype_t* datatype_p)
{
    auto element = layout.plan();
    if (!element) {
        return log_error("ucp_layout_datatype_create", element.error());
    }
    auto made   = std::make_unique<layout_datatype>(retain(&layout), std::move(*element));
    auto& table = datatype_table::instance();
    const std::lock_guard guard(table.lock);
    if (const auto status = ucp_dt_create_generic(&operations, made.get(), &made->value); status != UCS_OK) {
        ucs_error("ucp_layout_datatype_create: ucp_dt_create_generic failed (%d)", static_cast<int>(status));
        return status;
    }
    rollback undo([&] { ucp_dt_destroy(made->value); });
    table.all.emplace(made->value, made.get());
    undo.cancel();
    *datatype_p = made.release()->value;
    return UCS_OK;
}

constexpr std::uint64_t known_fields =
    UCP_LAYOUT_DATATYPE_ATTR_FIELD_OPERATIONS | UCP_LAYOUT_DATATYPE_ATTR_FIELD_CONTEXT;

ucs_status_t query(ucp_datatype_t datatype, ucp_layout_datatype_attr_t& attr)
{
    const auto status = check_field_mask("ucp_layout_datatype_query", attr.field_mask, known_fields);
    if (status != UCS_OK) {
        return status;
    }
    auto& table = datatype_table::instance();
    const std::lock_guard guard(table.lock);
    const auto found = table.all.find(datatype);
    if (found == table.all.end()) {
        ucs_error("ucp_layout_datatype_query: datatype 0x%lx was not made from a layout", datatype);
        return UCS_ERR_INVALID_PARAM;
    }
    if (attr.field_mask & UCP_LAYOUT_DATATYPE_ATTR_FIELD_OPERATIONS) {
        attr.operations = operations;
    }
    if (attr.field_mask & UCP_LAYOUT_DATATYPE_ATTR_FIELD_CONTEXT) {
        attr.context = found->second;
    }
    return UCS_OK;
}

} // namespace

ucs_status_t ucp_layout_datatype_query(ucp_datatype_t datatype, ucp_layout_datatype_attr_t* attr)
{
    return checked(__func__, {{"attr", attr}}, [&] { return query(datatype, *attr); });
}

ucs_status_t ucp_layout_datatype_create(ucp_layout_h layout, ucp_datatype_t* datatype_p)
{
    return checked(__func__, {{"layout", layout}, {"datatype_p", datatype_p}},
                   [&] { return create(*layout, datatype_p); });
}

void ucp_layout_datatype_destroy(ucp_datatype_t datatype)
{
    if (datatype == 0) {
        return;
    }
    auto& table               = datatype_table::instance();
    layout_datatype* released = nullptr;
    {
        const std::lock_guard guard(table.lock);
        if (const auto found = table.all.find(datatype); found != table.all.end()) {
            released = found->second;
            table.all.erase(found);
        }
    }
    if (released == nullptr) {
        ucs_error("ucp_layout_datatype_destroy: datatype 0x%lx was not made from a layout", datatype);
        return;
    }
    released->remove_user();
}
