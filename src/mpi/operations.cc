#include "operations.h"

#include "requests.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ucxl::mpi
{

namespace
{

struct operation_table {
    std::mutex lock;
    pending_operations all;
    std::uint64_t last_number = 0;
    std::size_t next_look     = 64; // number of operations at which all are looked at
};

// Not destroyed at exit: other threads may still be in MPI.
operation_table& table()
{
    static operation_table& only = *new operation_table;
    return only;
}

} // namespace

constinit std::atomic<std::size_t> operations::_number{0}, operations::_length{0};

void operation::set_origin(packed_side&& side)
{
    operations::_length.fetch_add(static_cast<std::size_t>(side.length()), std::memory_order_relaxed);
    _origin.emplace(std::move(side));
}

void operation::set_result(packed_side&& side)
{
    operations::_length.fetch_add(static_cast<std::size_t>(side.length()), std::memory_order_relaxed);
    _result.emplace(std::move(side));
}

void operation::finish_without_unpacking() noexcept
{
    for (auto* const side : {&_origin, &_result}) {
        if (*side) {
            operations::_length.fetch_sub(static_cast<std::size_t>((*side)->length()), std::memory_order_relaxed);
            side->reset();
        }
    }
    _is_done.store(true, std::memory_order_release);
}

bool operation::may_finish() noexcept
{
    return _request == MPI_REQUEST_NULL || is_done() || requests::is_over(_request, _is_in_call);
}

void operation::give_up() noexcept
{
    const std::lock_guard guard(_lock);
    finish_without_unpacking();
}

void operation::finish() noexcept
{
    const std::lock_guard guard(_lock);
    if (_result) {
        _result->unpack();
    }
    finish_without_unpacking();
}

void operations::add(pending_operations&& one) noexcept
{
    pending_operations done; // released after the lock
    const std::lock_guard guard(table().lock);
    auto& all = table().all;
    // Those that ended with their requests. In front there may be one that is not complete before a flush.
    const auto is_over = [](const pending_operation& each) { return each.ending_calls == 0 && each.moved->is_done(); };
    while (!all.empty() && is_over(all.front())) {
        done.splice(done.end(), all, all.begin());
    }
    if (all.size() >= table().next_look) {
        for (auto each = all.begin(); each != all.end();) {
            const auto current = each++;
            if (is_over(*current)) {
                done.splice(done.end(), all, current);
            }
        }
        table().next_look = std::max<std::size_t>(64, 2 * all.size());
    }
    one.front().number = ++table().last_number;
    all.splice(all.end(), one);
    _number.store(all.size(), std::memory_order_relaxed);
}

void ending_operations::hold() noexcept
{
    const std::lock_guard guard(table().lock);
    for (auto& each : table().all) {
        if (has(each)) {
            ++each.ending_calls;
            _last_number = each.number;
        }
    }
}

void ending_operations::release(bool are_complete) noexcept
{
    pending_operations done; // released after the lock
    std::unique_lock guard(table().lock);
    auto& all = table().all;
    for (auto each = all.begin(); each != all.end() && each->number <= _last_number;) {
        const auto current = each++;
        if (!has(*current)) {
            continue;
        }
        if (are_complete && !current->moved->is_done()) {
            guard.unlock();
            if (current->moved->may_finish()) {
                current->moved->finish();
            }
            guard.lock();
            // Another call may have taken out the next one.
            each = std::next(current);
        }
        if (--current->ending_calls == 0 && current->moved->is_done()) {
            done.splice(done.end(), all, current);
        }
    }
    operations::_number.store(all.size(), std::memory_order_relaxed);
}

} // namespace ucxl::mpi
