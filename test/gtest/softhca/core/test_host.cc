#include "test_host.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <sys/mman.h>

namespace ucxl::softhca::test
{

namespace
{

constexpr std::size_t page = 4096;

std::span<std::byte> map_zeroed(std::size_t bytes)
{
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
        throw std::runtime_error("no memory for the test machine");
    }
    return {static_cast<std::byte*>(at), bytes};
}

std::uint64_t total(std::span<const piece> pieces)
{
    std::uint64_t sum = 0;
    for (const piece& one : pieces) {
        sum += one.length;
    }
    return sum;
}

// A position in a list of pieces.
class piece_cursor
{
public:
    explicit piece_cursor(std::span<const piece> pieces) : _pieces(pieces) { skip_empty(); }

    bool at_end() const { return _pieces.empty(); }
    const piece& current() const { return _pieces.front(); }
    std::uint64_t address() const { return current().address + _done; }
    std::uint64_t left() const { return current().length - _done; }

    void advance(std::uint64_t bytes)
    {
        _done += bytes;
        skip_empty();
    }

private:
    void skip_empty()
    {
        while (!_pieces.empty() && _done == _pieces.front().length) {
            _pieces = _pieces.subspan(1);
            _done   = 0;
        }
    }

    std::span<const piece> _pieces;
    std::uint64_t _done = 0;
};

struct located {
    std::byte* bytes = nullptr;
    bool gone        = false;
};

located locate(test_machine& machine, const piece& where, std::uint64_t address, std::uint64_t length)
{
    switch (where.space) {
    case space::engine:
        return {reinterpret_cast<std::byte*>(address)};
    case space::memic:
        return {memic_at(machine.memory(), address, length)};
    case space::process:
        break;
    }
    test_process* const owner = machine.find(where.client);
    if (owner == nullptr || !owner->is_alive()) {
        return {nullptr, true};
    }
    return {owner->at(address, length)};
}

} // namespace

std::span<std::byte> test_process::allocate(std::size_t bytes)
{
    const std::size_t whole         = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
    const std::span<std::byte> made = map_zeroed(whole + page);
    mprotect(made.data() + whole, page, PROT_NONE);
    _mapped.push_back(made);
    _memory.push_back(made.first(bytes));
    return made.first(bytes);
}

std::byte* test_process::at(std::uint64_t address, std::uint64_t length)
{
    for (const std::span<std::byte> range : _memory) {
        const auto first = reinterpret_cast<std::uint64_t>(range.data());
        if (address >= first && address - first <= range.size() && length <= range.size() - (address - first)) {
            return range.data() + (address - first);
        }
    }
    return nullptr;
}

void test_process::stop()
{
    _device.reset();
    _alive = false;
}

void test_process::kill()
{
    _alive = false;
}

void test_process::kill_with_lock()
{
    _alive                = false;
    _machine._holder_died = true;
}

bool test_process::has_lock() const
{
    const auto holder = std::to_integer<client_id>(std::atomic_ref(_machine._holder[0]).load());
    return holder != 0 && holder == _id;
}

bool test_process::lock()
{
    _machine._lock.lock();
    std::atomic_ref(_machine._holder[0]).store(static_cast<std::byte>(_id));
    if (stop_when_locked) {
        std::raise(SIGSTOP);
    }
    return std::exchange(_machine._holder_died, false);
}

void test_process::unlock()
{
    std::atomic_ref(_machine._holder[0]).store(std::byte{0});
    _machine._lock.unlock();
}

void test_process::give_way()
{
    if (has_lock()) {
        throw std::logic_error("the model gives way to others and keeps the lock");
    }
    ++ways_given;
}

move_status test_process::move(std::span<const piece> to, std::span<const piece> from)
{
    if (total(to) != total(from)) {
        throw std::logic_error("the model moves between lists of different length");
    }
    piece_cursor target(to);
    piece_cursor source(from);
    while (!target.at_end() && !source.at_end()) {
        const std::uint64_t length = std::min(target.left(), source.left());
        const located into         = locate(_machine, target.current(), target.address(), length);
        const located out_of       = locate(_machine, source.current(), source.address(), length);
        if (into.bytes == nullptr) {
            ++refused_moves;
            return into.gone ? move_status::gone_to : move_status::fault_to;
        }
        if (out_of.bytes == nullptr) {
            ++refused_moves;
            return out_of.gone ? move_status::gone_from : move_status::fault_from;
        }
        std::memmove(into.bytes, out_of.bytes, length);
        target.advance(length);
        source.advance(length);
    }
    return move_status::ok;
}

bool test_process::alive(client_id client)
{
    const test_process* const found = _machine.find(client);
    return found != nullptr && found->is_alive();
}

std::uint64_t test_process::now_ns()
{
    return _machine.time_ns;
}

void test_process::wake_at(std::uint64_t time_ns)
{
    woken_at_ns = std::min(woken_at_ns, time_ns);
}

void test_process::notify(client_id client, event_route& route, std::uint32_t type)
{
    if (when_notified) {
        when_notified(type);
    }
    if (loses_events) {
        return;
    }
    route.sent += route.channel >= 0 ? 1 : 0;
    _machine.notifications.push_back({client, route, type});
}

test_machine::test_machine(const fabric_options& options)
    : _bytes(map_zeroed(fabric::memory_bytes())), _holder(map_zeroed(page))
{
    if (const auto formatted = fabric::format(_bytes, options); !formatted) {
        throw std::runtime_error(formatted.error());
    }
}

test_machine::~test_machine()
{
    // A killed process must release nothing, and has nothing else to free.
    for (test_process& process : _processes) {
        if (process.is_alive()) {
            process.stop();
        }
        for (const std::span<std::byte> mapped : process._mapped) {
            munmap(mapped.data(), mapped.size());
        }
    }
    for (test_process& process : _processes) {
        process._device.reset();
    }
    munmap(_bytes.data(), _bytes.size());
    munmap(_holder.data(), _holder.size());
}

test_process& test_machine::start()
{
    test_process& made = _processes.emplace_back(*this);
    auto device =
        fabric::attach(_bytes, made, {static_cast<std::int32_t>(1000 + _processes.size()), _processes.size()});
    if (!device) {
        throw std::runtime_error(device.error());
    }
    made._device = std::move(*device);
    made._id     = made._device->self();
    return made;
}

test_process* test_machine::find(client_id client)
{
    // The index of an ended process may have been reused.
    test_process* found = nullptr;
    for (test_process& process : _processes) {
        if (process._device != nullptr && process._id == client && (found == nullptr || process.is_alive())) {
            found = &process;
        }
    }
    return found;
}

} // namespace ucxl::softhca::test
