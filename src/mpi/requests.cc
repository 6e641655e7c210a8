#include "requests.h"

#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>

namespace ucxl::mpi
{

namespace
{

struct request_table {
    std::mutex lock;
    std::unordered_map<MPI_Request, held_ptr> running;
    std::vector<held_ptr> to_the_end;
};

// Not destroyed at exit: other threads may still be in MPI.
request_table& table()
{
    static request_table& only = *new request_table;
    return only;
}

} // namespace

constinit std::atomic<std::size_t> requests::_number{0};

void requests::hold(MPI_Request request, held_ptr things) noexcept
{
    held_ptr ended; // released after the lock
    const std::lock_guard guard(table().lock);
    try {
        // A handle that is there already is that of a request that ended unseen, or the one that MPI gives to all
        // requests that end at once.
        auto& place = table().running[request];
        ended       = std::exchange(place, std::move(things));
        _number.store(table().running.size(), std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {
        static_cast<void>(things.release());
    }
}

held_ptr requests::take(MPI_Request request)
{
    const std::lock_guard guard(table().lock);
    const auto found = table().running.find(request);
    if (found == table().running.end()) {
        return nullptr;
    }
    held_ptr things = std::move(found->second);
    table().running.erase(found);
    _number.store(table().running.size(), std::memory_order_relaxed);
    return things;
}

void requests::keep_to_the_end(held_ptr things) noexcept
{
    const std::lock_guard guard(table().lock);
    try {
        table().to_the_end.push_back(nullptr);
        table().to_the_end.back() = std::move(things);
    } catch (const std::bad_alloc&) {
        static_cast<void>(things.release());
    }
}

void requests::forget_all()
{
    std::unordered_map<MPI_Request, held_ptr> running;
    std::vector<held_ptr> to_the_end;
    const std::lock_guard guard(table().lock);
    running.swap(table().running);
    to_the_end.swap(table().to_the_end);
    _number.store(0, std::memory_order_relaxed);
}

void ending_requests::take(int count, MPI_Request* array) noexcept
{
    try {
        for (int i = 0; i < count; ++i) {
            if (array[i] == MPI_REQUEST_NULL) {
                continue;
            }
            _taken.reserve(_taken.size() + 1);
            if (auto things = requests::take(array[i])) {
                _taken.push_back({&array[i], array[i], std::move(things)});
            }
        }
    } catch (const std::bad_alloc&) {
        // What was not taken stays in the table, and ends with the next request of its handle.
        return;
    }
}

void ending_requests::put_back() noexcept
{
    for (taken& each : _taken) {
        if (*each.place == each.request) { // still running, or persistent
            requests::hold(each.request, std::move(each.things));
        }
    }
    _taken.clear();
}

} // namespace ucxl::mpi
