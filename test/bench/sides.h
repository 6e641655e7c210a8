// The two processes of a transfer, as `bench transfer` tells them line by line:
//
//     case NUMBER        of transfer_cases(); every method is tried and what arrived compared; answers with its bytes
//     run METHOD TIMES   so many ping-pongs; answers with the seconds of that, halved
//
// The first process reads standard input and hands each line to the second one through a FIFO. Both sleep between
// lines, so that others can be measured. std only: the peers' programs include it too.
#pragma once

#include "layout_case.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace ucxl::bench
{

// Memory of one process.
struct side_memory {
    std::vector<std::byte> source, target;               // strided
    std::vector<std::byte> packed_source, packed_target; // contiguous
};

// How one library moves bytes between the two. Calls return when the memory can be used again.
class side
{
public:
    virtual ~side() = default;

    virtual void prepare(const layout_case& of, side_memory& memory) = 0;
    virtual void send_packed()                                       = 0;
    virtual void receive_packed()                                    = 0;
    virtual void send_strided()                                      = 0;
    virtual void receive_strided()                                   = 0;
};

class side_loop
{
public:
    side_loop(side& by, bool is_first) : _by(by), _is_first(is_first) {}

    // Until standard input ends.
    void serve(const std::string& fifo)
    {
        if (_is_first) {
            std::ofstream second(fifo);
            std::cout.precision(15);
            for (std::string line; std::getline(std::cin, line);) {
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

    double obey(const std::string& line)
    {
        std::istringstream words(line);
        std::string verb, name;
        words >> verb;
        if (verb == "case") {
            std::size_t number = 0;
            words >> number;
            take(number);
            return static_cast<double>(_case.length);
        }
        unsigned times = 0;
        words >> name >> times;
        for (const method& by : methods) {
            if (by.name == name) {
                return seconds(by, times);
            }
        }
        throw std::runtime_error("no method " + name);
    }

    void take(std::size_t number)
    {
        _case = transfer_cases().at(number).make();
        _memory.source.resize(_case.extent);
        _memory.target.resize(_case.extent);
        _memory.packed_source.resize(_case.length);
        _memory.packed_target.resize(_case.length);
        for (std::size_t i = 0; i < _case.length; ++i) {
            _memory.packed_source[i] = static_cast<std::byte>(i * 7 + i / 255);
        }
        _case.hand.unpack(_memory.source.data(), _memory.packed_source.data());
        _by.prepare(_case, _memory);
        for (const method& by : methods) {
            std::ranges::fill(_memory.target, std::byte{});
            std::ranges::fill(_memory.packed_target, std::byte{});
            ping_pong(by);
            if (by.to_strided) {
                _case.hand.pack(_memory.packed_target.data(), _memory.target.data());
            }
            if (_memory.packed_target != _memory.packed_source) {
                throw std::runtime_error(_case.name + ": something else arrived by " + by.name);
            }
        }
    }

    void send(const method& by)
    {
        if (by.from_strided && !by.by_hand) {
            _by.send_strided();
            return;
        }
        if (by.by_hand) {
            _case.hand.pack(_memory.packed_source.data(), _memory.source.data());
        }
        _by.send_packed();
    }

    void receive(const method& by)
    {
        if (by.to_strided && !by.by_hand) {
            _by.receive_strided();
            return;
        }
        _by.receive_packed();
        if (by.to_strided) {
            _case.hand.unpack(_memory.target.data(), _memory.packed_target.data());
        }
    }

    void ping_pong(const method& by)
    {
        if (_is_first) {
            send(by);
            receive(by);
        } else {
            receive(by);
            send(by);
        }
    }

    // The first one wakes the other side up.
    double seconds(const method& by, unsigned times)
    {
        ping_pong(by);
        const auto begin = std::chrono::steady_clock::now();
        for (unsigned i = 0; i < times; ++i) {
            ping_pong(by);
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 2;
    }

    side& _by;
    bool _is_first;
    layout_case _case;
    side_memory _memory;
};

} // namespace ucxl::bench
