// The two processes of a transfer, as `bench transfer` tells them line by line:
//
//     data KIND          live: the sender writes before each message what it sends, and the receiver reads what has
//                        come, inside the time; same: nobody does. The latter until it is told
//     buffers NUMBER     from the next case on so many sets of memory are used in turn, or as many as there is memory
//                        for: what one message left in the caches is not what the next one moves. 1 until it is told
//     case NUMBER        of transfer_cases(); every method is tried and what arrived compared; answers with its bytes
//     bytes LENGTH       the same of contiguous memory
//     cpus               answers with the CPU to which the first process is pinned, plus cpu_factor times that of the
//                        second one; -1: one of them is not pinned
//     loaded             answers with 1 if libucp_layout is in the first process, otherwise 0
//     run METHOD TIMES   so many ping-pongs; answers with the seconds of that, halved; of put, get, copy and
//                        limit-pass, which the first process does alone, so many of these and all their seconds. Limits
//                        are measured with one buffer only. With
//                        the methods own-sc and own-ss nothing moves: the processes write and read their live data and
//                        take turns by a flag
//                        fresh and fresh-hand are of cases that have fresh_lists: each message has a list of its own,
//                        for which all that a library needs is made and released inside the time
//     first LENGTH       makes memory of so many bytes that the other process has never used, and answers with the
//                        seconds that the first process takes to read a few bytes of each page by put or get, with all
//                        that it needs for that; -1: it cannot. Then
//     again              the same once more
//     trip TIMES         so many times one line of the caches goes to the other process and back; answers with the
//                        seconds of one
//
// The first process reads standard input and hands each line to the second one through a FIFO. It answers when both
// have done what the line says: what the second one still had to do for its last message would run on the CPU and in
// the memory of whoever is measured next, and nobody's time would hold it. Both sleep between lines, so that others can
// be measured. All pairs work in the same pages, given to each by path: where pages happen to lie decides how long
// strided memory takes. Without UCX: the peers' programs include it too.
#pragma once

#include "bench/common/cpus.h"
#include "bench/common/layout_case.h"
#include "bench/common/shared_memory.h"
#include "counter.h"
#include "fresh_lists.h"
#include "touched_memory.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ucxl::bench
{

// Memory of one process.
struct side_memory {
    std::span<std::byte> source, target;               // strided
    std::span<std::byte> packed_source, packed_target; // contiguous
};

// What the first process can do while the other one sleeps: write into its memory, read from there, and the same
// between source and target of its own by nothing but a copy.
enum class alone { put, get, copy };

// What limits a method, see limit_side.h.
enum class limit { queue, short_queue, direct, pass };

inline constexpr limit all_limits[] = {limit::queue, limit::short_queue, limit::direct, limit::pass};

constexpr bool is_queue(limit by)
{
    return by == limit::queue || by == limit::short_queue;
}

struct limit_way {
    limit by;
    bool streaming, to_strided;
};

// As `run` and the results have it, without the ending of the other methods' names: -sc or -ss.
inline std::string name_of(limit by, bool streaming)
{
    constexpr const char* names[] = {"limit-queue", "limit-short-queue", "limit-direct", "limit-pass"};
    return std::string(names[static_cast<int>(by)]) + (streaming ? "-streaming" : "");
}

inline constexpr int cpu_factor = 1 << 16;

// What side::allocate needs beside each of the four parts of a buffer.
inline constexpr std::size_t buffer_padding = 8192;

// Memory of the two processes of a pair: one after the other, then what they meet in, then that of the limits.
inline constexpr std::size_t side_memory_length    = std::size_t{256} << 20;
inline constexpr std::size_t meeting_memory_length = 4096;
inline constexpr std::size_t queue_memory_length   = std::size_t{5} << 20; // of limit_side
inline constexpr std::size_t flag_memory_length    = 4096;                 // of mapped_side
inline constexpr std::size_t limit_memory_length   = queue_memory_length + flag_memory_length;

constexpr std::size_t pair_length(std::size_t side_length)
{
    return 2 * side_length + meeting_memory_length + limit_memory_length;
}

inline constexpr std::size_t pair_memory_length = pair_length(side_memory_length);

// Zeroed memory is one.
struct meeting {
    alignas(64) std::atomic<std::uint64_t> finished; // how often the second process was, since the line came
    alignas(64) std::atomic<int> second_cpu;
    counter turns[2]; // of each process, since the line came
};
static_assert(sizeof(meeting) <= meeting_memory_length && std::atomic<std::uint64_t>::is_always_lock_free);

// How one library moves bytes between the two. Calls return when the memory can be used again, and when a put is there.
class side
{
public:
    virtual ~side() = default;

    // Memory of this process for all buffers, of `length` bytes, that the library under test has to allocate. Empty: it
    // works in that of all pairs.
    virtual std::span<std::byte> own_memory(std::size_t /*length*/) { return {}; }
    // Zeroed memory that stays until the next call: of `all` where it can be.
    virtual side_memory allocate(const layout_case& of, std::span<std::byte> all)
    {
        const auto part = [&](std::size_t length) {
            constexpr std::size_t page = 4096, into = 16; // as malloc places what is large
            const std::size_t whole = (into + length + page - 1) / page * page;
            if (whole > all.size()) {
                throw std::runtime_error(of.name + " does not fit in the memory of a pair");
            }
            const auto made = all.subspan(into, length);
            all             = all.subspan(whole);
            std::ranges::fill(made, std::byte{});
            return made;
        };
        const auto source = part(of.extent), target = part(of.extent);
        const auto packed_source = part(of.length);
        return {source, target, packed_source, part(of.length)};
    }

    virtual void prepare(const layout_case& of, const side_memory& memory) = 0;
    virtual void send_packed()                                             = 0;
    virtual void receive_packed()                                          = 0;
    virtual void send_strided()                                            = 0;
    virtual void receive_strided()                                         = 0;

    // What a process does while it waits for the other one, which may need it.
    virtual void progress() {}

    virtual bool moves_alone() const { return false; }
    // From strided memory, to strided memory or to packed bytes.
    virtual void move(alone, bool) {}

    // Blocks of source or target, with all that this list needs. By hand they go as packed bytes.
    virtual bool moves_lists() const { return false; }
    virtual void send_list(const block_order&) {}
    virtual void receive_list(const block_order&) {}

    // See "first" above. Both processes are told to make the memory.
    virtual void make_new(std::size_t /*length*/, bool /*is_first*/) {}
    virtual double use_new() { return -1; }

    virtual bool moves_strided() const { return true; }
    virtual bool measures(limit) const { return false; }
    // Memory of both processes, zeroed, before the first call. All pairs are given the same.
    virtual void share(std::span<std::byte>) {}
    virtual void send_limit(const limit_way&) {}
    virtual void receive_limit(const limit_way&) {}
    virtual void pass(const limit_way&) {}
};

class side_loop
{
public:
    using side_maker = std::function<std::unique_ptr<side>()>;

    // `memory`: the path of shared_memory that every pair is given, of which each of its processes has `length`.
    // `make` makes the side of one buffer.
    side_loop(side_maker make, bool is_first, const std::string& memory, std::size_t length = side_memory_length)
        : _make(std::move(make)), _is_first(is_first), _length(length), _shared(memory, pair_length(length)),
          _meeting(*reinterpret_cast<meeting*>(_shared.data() + 2 * length))
    {
        add_buffer();
    }

    // Until standard input ends.
    void serve(const std::string& fifo)
    {
        if (_is_first) {
            std::ofstream second(fifo);
            std::cout.precision(15);
            for (std::string line; std::getline(std::cin, line);) {
                // All pairs meet in these numbers, each one while the others sleep.
                _meeting.finished.store(0, std::memory_order_release);
                _meeting.turns[0].set(0);
                _meeting.turns[1].set(0);
                second << line << std::endl;
                std::cout << obey(line) << std::endl;
            }
        } else {
            std::ifstream first(fifo);
            for (std::string line; std::getline(first, line);) {
                obey(line);
            }
        }
    }

private:
    struct method {
        const char* name;
        bool from_strided, to_strided, by_hand;
    };
    static constexpr method methods[] = {{"contiguous", false, false, false},
                                         {"sc", true, false, false},
                                         {"ss", true, true, false},
                                         {"sc-hand", true, false, true},
                                         {"ss-hand", true, true, true}};

    struct lone_method {
        const char* name;
        alone how;
        bool to_strided;
    };
    static constexpr lone_method lone_methods[] = {{"put-sc", alone::put, false},   {"put-ss", alone::put, true},
                                                   {"get-sc", alone::get, false},   {"get-ss", alone::get, true},
                                                   {"copy-sc", alone::copy, false}, {"copy-ss", alone::copy, true}};

    // Memory, and what moves it.
    struct buffer {
        std::unique_ptr<side> by;
        side_memory memory;
        touched_memory source_lines, target_lines, packed_source_lines, packed_target_lines;
    };

    void add_buffer()
    {
        buffer added;
        added.by = _make();
        added.by->share({_shared.data() + 2 * _length + meeting_memory_length, limit_memory_length});
        _buffers.push_back(std::move(added));
    }

    buffer& now() { return _buffers[_now]; }
    const buffer& now() const { return _buffers[_now]; }
    side& by_now() { return *now().by; }

    double obey(const std::string& line)
    {
        _num_meetings       = 0;
        _num_turns          = 0;
        _now                = 0;
        const double answer = answer_to(line);
        meet();
        return answer;
    }

    double answer_to(const std::string& line)
    {
        std::istringstream words(line);
        std::string verb, name;
        words >> verb;
        if (verb == "case" || verb == "bytes") {
            std::size_t number = 0;
            words >> number;
            take(verb == "case" ? transfer_cases().at(number).make() : contiguous_case(number));
            return static_cast<double>(_case.length);
        }
        if (verb == "buffers") {
            words >> _wanted_buffers;
            return 0;
        }
        if (verb == "cpus") {
            return cpus();
        }
        if (verb == "loaded") {
            return dlsym(RTLD_DEFAULT, "ucp_layout_map") == nullptr ? 0 : 1;
        }
        if (verb == "first") {
            std::size_t length = 0;
            words >> length;
            by_now().make_new(length, _is_first);
            return _is_first ? by_now().use_new() : 0;
        }
        if (verb == "again") {
            return _is_first ? by_now().use_new() : 0;
        }
        unsigned times = 0;
        if (verb == "trip") {
            words >> times;
            return seconds_of_both(times, [&] { take_turns(); }) / times;
        }
        words >> name;
        if (verb == "data") {
            _is_live = name == "live";
            return 0;
        }
        words >> times;
        return run(name, times);
    }

    double run(const std::string& name, unsigned times)
    {
        for (const method& by : methods) {
            if (by.name == name && can(by)) {
                return seconds_of_both(times, [&] { ping_pong(by); }) / 2;
            }
        }
        for (const bool is_by_hand : {false, true}) {
            if (name == (is_by_hand ? "fresh-hand" : "fresh") && can_fresh(is_by_hand)) {
                return seconds_of_both(times, [&] { ping_pong(fresh{is_by_hand}); }) / 2;
            }
        }
        for (const bool to_strided : {false, true}) {
            if (name == (to_strided ? "own-ss" : "own-sc")) {
                return seconds_of_both(times, [&] { ping_pong(own_work{to_strided}); }) / 2;
            }
        }
        for (const lone_method& by : lone_methods) {
            if (by.name == name && by_now().moves_alone()) {
                return seconds_alone(times, [&] {
                    write_source(true);
                    by_now().move(by.how, by.to_strided);
                    read_target(by.to_strided);
                });
            }
        }
        for (const limit_way& by : limit_ways()) {
            if (name_of(by.by, by.streaming) + (by.to_strided ? "-ss" : "-sc") == name) {
                return by.by == limit::pass ? seconds_alone(times, [&] { pass(by); })
                                            : seconds_of_both(times, [&] { ping_pong(by); }) / 2;
            }
        }
        throw std::runtime_error("no method " + name);
    }

    // What the two processes do anyway.
    struct own_work {
        bool to_strided;
    };

    void send(const own_work&)
    {
        write_source(true);
        ++_num_turns;
        _meeting.turns[_is_first ? 0 : 1].set(_num_turns);
    }
    void receive(const own_work& by)
    {
        _meeting.turns[_is_first ? 1 : 0].wait_for(_is_first ? _num_turns : _num_turns + 1);
        read_target(by.to_strided);
    }

    struct fresh {
        bool is_by_hand;
    };

    bool can_fresh(bool is_by_hand) const { return fresh_lists::has(_case) && (is_by_hand || now().by->moves_lists()); }

    // One byte of each cache line, as touched_memory does it.
    template <typename Touch>
    void touch_blocks(const block_order& list, std::span<std::byte> memory, Touch&& touch) const
    {
        if (!_is_live) {
            return;
        }
        for (const std::size_t offset : list.offsets) {
            for (std::size_t at = 0; at < list.length; at += line_length) {
                touch(memory.data() + offset + at);
            }
        }
    }

    void send(const fresh& by)
    {
        const block_order& list = _lists.next();
        _lists.skip(); // the receiver's
        touch_blocks(list, now().memory.source, [](volatile std::byte* place) { *place = *place; });
        if (!by.is_by_hand) {
            by_now().send_list(list);
            return;
        }
        std::byte* to = now().memory.packed_source.data();
        for (const std::size_t offset : list.offsets) {
            std::memcpy(to, now().memory.source.data() + offset, list.length);
            to += list.length;
        }
        by_now().send_packed();
    }
    void receive(const fresh& by)
    {
        _lists.skip(); // the sender's
        const block_order& list = _lists.next();
        if (by.is_by_hand) {
            by_now().receive_packed();
            const std::byte* from = now().memory.packed_target.data();
            for (const std::size_t offset : list.offsets) {
                std::memcpy(now().memory.target.data() + offset, from, list.length);
                from += list.length;
            }
        } else {
            by_now().receive_list(list);
        }
        touch_blocks(list, now().memory.target, [](const volatile std::byte* place) { static_cast<void>(*place); });
    }

    // What one message brings. The processes have equal memory, so each knows what the other one sent.
    void check(const fresh& by)
    {
        const fresh_lists before = _lists;
        clear();
        ping_pong(by);
        fresh_lists drawn = before;
        if (_is_first) {
            drawn.skip(); // its own message
            drawn.skip();
        }
        const block_order sent     = drawn.next();
        const block_order received = drawn.next();
        for (std::size_t i = 0; i < sent.offsets.size(); ++i) {
            if (std::memcmp(now().memory.target.data() + received.offsets[i],
                            now().memory.source.data() + sent.offsets[i], sent.length) != 0) {
                throw std::runtime_error(_case.name + ": something else arrived by a fresh list");
            }
        }
        _case.hand.pack(now().memory.packed_source.data(), now().memory.source.data()); // what others compare with
    }

    void take_turns()
    {
        ++_num_turns;
        if (!_is_first) {
            _meeting.turns[0].wait_for(_num_turns);
        }
        _meeting.turns[_is_first ? 0 : 1].set(_num_turns);
        if (_is_first) {
            _meeting.turns[1].wait_for(_num_turns);
        }
    }

    void write_source(bool is_strided) const
    {
        if (_is_live) {
            (is_strided ? now().source_lines : now().packed_source_lines).write();
        }
    }
    void read_target(bool is_strided) const
    {
        if (_is_live) {
            (is_strided ? now().target_lines : now().packed_target_lines).read();
        }
    }

    bool can(const method& by) const { return now().by->moves_strided() || by.by_hand || !by.from_strided; }

    std::vector<limit_way> limit_ways() const
    {
        std::vector<limit_way> made;
        for (const limit by : all_limits) {
            if (_buffers.size() == 1 && now().by->measures(by)) {
                made.insert(made.end(), {{by, false, false}, {by, false, true}, {by, true, false}, {by, true, true}});
            }
        }
        return made;
    }

    // The first process returns when the second one has come here as often; the second one does not wait.
    void meet()
    {
        ++_num_meetings;
        if (!_is_first) {
            _meeting.finished.store(_num_meetings, std::memory_order_release);
            return;
        }
        while (_meeting.finished.load(std::memory_order_acquire) < _num_meetings) {
            by_now().progress();
        }
    }

    double cpus()
    {
        const int own = pinned_to();
        if (!_is_first) {
            _meeting.second_cpu.store(own, std::memory_order_relaxed);
        }
        meet();
        const int second = _meeting.second_cpu.load(std::memory_order_relaxed);
        return own < 0 || second < 0 ? -1 : own + cpu_factor * second;
    }

    void take(layout_case moved)
    {
        _case                   = std::move(moved);
        const std::size_t whole = 2 * (_case.extent + _case.length) + 4 * buffer_padding;
        const std::size_t num   = std::clamp<std::size_t>(_length / whole, 1, _wanted_buffers);
        while (_buffers.size() < num) {
            add_buffer();
        }
        _buffers.resize(num);
        if (fresh_lists::has(_case)) {
            _lists = fresh_lists(_case);
        }
        const std::size_t part         = _length / num;
        const std::span<std::byte> own = by_now().own_memory(_length);
        std::byte* const first         = own.empty() ? _shared.data() + (_is_first ? 0 : _length) : own.data();
        for (_now = 0; _now < num; ++_now) {
            fill(now(), {first + _now * part, part});
            try_all();
        }
        _now = 0;
    }

    void fill(buffer& filled, std::span<std::byte> memory)
    {
        filled.memory = filled.by->allocate(_case, memory);
        for (std::size_t i = 0; i < _case.length; ++i) {
            filled.memory.packed_source[i] = static_cast<std::byte>(i * 7 + i / 255);
        }
        _case.hand.unpack(filled.memory.source.data(), filled.memory.packed_source.data());
        const auto strided = [&](std::span<std::byte> touched) {
            return touched_memory(footprint(*_case.type, _case.extent, shift_of(touched.data())), touched);
        };
        const auto packed = [&](std::span<std::byte> touched) {
            return touched_memory(footprint(_case.length, shift_of(touched.data())), touched);
        };
        filled.source_lines        = strided(filled.memory.source);
        filled.target_lines        = strided(filled.memory.target);
        filled.packed_source_lines = packed(filled.memory.packed_source);
        filled.packed_target_lines = packed(filled.memory.packed_target);
        filled.by->prepare(_case, filled.memory);
    }

    void try_all()
    {
        for (const method& by : methods) {
            if (can(by)) {
                clear();
                ping_pong(by);
                compare(by.name, by.to_strided);
            }
        }
        if (by_now().moves_alone()) {
            for (const lone_method& by : lone_methods) {
                check(by);
            }
        }
        for (const limit_way& by : limit_ways()) {
            check(by);
        }
        for (const bool is_by_hand : {false, true}) {
            if (can_fresh(is_by_hand)) {
                check(fresh{is_by_hand});
            }
        }
    }

    void clear()
    {
        std::ranges::fill(now().memory.target, std::byte{});
        std::ranges::fill(now().memory.packed_target, std::byte{});
    }

    void compare(const char* name, bool strided)
    {
        if (strided) {
            _case.hand.pack(now().memory.packed_target.data(), now().memory.target.data());
        }
        if (!std::ranges::equal(now().memory.packed_target, now().memory.packed_source)) {
            throw std::runtime_error(_case.name + ": something else arrived by " + name);
        }
    }

    // Between two ping-pongs, into memory that these do not write.
    void check(const lone_method& by)
    {
        const method& other = by.to_strided ? methods[0] : methods[2];
        clear();
        ping_pong(other);
        if (_is_first) {
            by_now().move(by.how, by.to_strided);
        }
        ping_pong(other);
        if (_is_first != (by.how == alone::put)) {
            compare(by.name, by.to_strided);
        }
    }

    // Where both ends are the same lines of memory, these carry the right bytes; a slot of the queue is too short.
    void check(const limit_way& by)
    {
        clear();
        ping_pong(methods[0]); // the other process has cleared its own, too
        if (by.by != limit::pass) {
            ping_pong(by);
        } else if (_is_first) {
            by_now().pass(by);
        }
        if (by.to_strided && !is_queue(by.by) && (_is_first || by.by != limit::pass)) {
            compare(name_of(by.by, by.streaming).c_str(), true);
        }
        ping_pong(methods[0]);
    }

    void send(const method& by)
    {
        write_source(by.from_strided);
        if (by.from_strided && !by.by_hand) {
            by_now().send_strided();
            return;
        }
        if (by.by_hand) {
            _case.hand.pack(now().memory.packed_source.data(), now().memory.source.data());
        }
        by_now().send_packed();
    }

    void receive(const method& by)
    {
        if (by.to_strided && !by.by_hand) {
            by_now().receive_strided();
        } else {
            by_now().receive_packed();
            if (by.to_strided) {
                _case.hand.unpack(now().memory.target.data(), now().memory.packed_target.data());
            }
        }
        read_target(by.to_strided);
    }

    void send(const limit_way& by)
    {
        write_source(true);
        by_now().send_limit(by);
    }
    void receive(const limit_way& by)
    {
        by_now().receive_limit(by);
        read_target(by.to_strided);
    }
    void pass(const limit_way& by)
    {
        write_source(true);
        by_now().pass(by);
        read_target(by.to_strided);
    }

    template <typename Way>
    void ping_pong(const Way& by)
    {
        if (_is_first) {
            send(by);
            receive(by);
        } else {
            receive(by);
            send(by);
        }
    }

    // Of both processes: from when both are ready until both are done. The first one wakes the other side up, or brings
    // memory into the caches.
    template <typename Fn>
    double seconds_of_both(unsigned times, Fn&& move)
    {
        move();
        meet();
        const auto begin = std::chrono::steady_clock::now();
        for (unsigned i = 0; i < times; ++i) {
            move();
            turn();
        }
        meet();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    template <typename Fn>
    double seconds_alone(unsigned times, Fn&& move)
    {
        if (!_is_first) {
            return 0;
        }
        move();
        const auto begin = std::chrono::steady_clock::now();
        for (unsigned i = 0; i < times; ++i) {
            move();
            turn();
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    // To the next buffer.
    void turn() { _now = _now + 1 == _buffers.size() ? 0 : _now + 1; }

    side_maker _make;
    bool _is_first;
    std::size_t _length;
    shared_memory _shared;
    meeting& _meeting;
    std::uint64_t _num_meetings = 0; // since the line came
    std::uint64_t _num_turns    = 0;
    bool _is_live               = false;
    layout_case _case;
    fresh_lists _lists; // of the case, if it has them
    std::vector<buffer> _buffers;
    std::size_t _now            = 0; // both processes are at the same one
    std::size_t _wanted_buffers = 1;
};

} // namespace ucxl::bench
