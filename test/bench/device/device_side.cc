// The two processes of a pair of `bench device`, and the one that tells what is decided without an option. They read
// lines and answer each with a number:
//
//     case NUMBER          of device_patterns(); every method moves it and every byte is compared; answers with its
//                          bytes, or with -1 if some were wrong
//     run METHOD TIMES     so many transfers, whose work requests and commands the device counts
//     copied METHOD        one transfer; answers with the bytes of the application's memory that CPUs copied
//     keys NUMBER          "auto" only: whether windows of that pattern get keys, both of them
//
// usage: bench_device_side windows|stock|auto
#include "bench/common/shared_memory.h"
#include "copy_counter.h"
#include "device_handler.h"
#include "device_method.h"
#include "device_patterns.h"

#include "support/check.h"
#include "support/ucp.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>

namespace ucxl::bench
{

namespace
{

enum class verb : std::uint8_t { prepare, run, copied, end };

struct order {
    verb what;
    unsigned method;
    unsigned number; // of the case, or of transfers
};

// What one process found. Both together are the answer.
struct finding {
    std::uint64_t copied = 0, num_wrong = 0;
};

struct named_method {
    const char* name;
    std::unique_ptr<method> (*make)(const method_parts& parts);
};

// What the two processes tell each other without UCX and the kernel: numbers of transfers.
struct progress_board {
    std::atomic<std::uint64_t> expected, done;
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value)
{
    return std::as_bytes(std::span(&value, 1));
}

template <typename T>
T value_of(std::span<const std::byte> bytes)
{
    T value;
    test::check(bytes.size() == sizeof(value), "the other process sent {} bytes", bytes.size());
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
}

class side
{
public:
    side(ucp_pair& pair, bool is_first, std::span<const named_method> methods)
        : _pair(pair), _is_first(is_first), _known(methods)
    {
        share_board();
        greet();
        watch_device();
    }

    finding obey(const order& given)
    {
        watch_device(); // a new object of the device may have put the device's own handler back
        switch (given.what) {
        case verb::prepare:
            return prepare(given.number);
        case verb::copied:
            return count_copies(*_methods.at(given.method));
        case verb::run:
            for (unsigned i = 0; i < given.number; ++i) {
                transfer(*_methods.at(given.method));
            }
            break;
        case verb::end:
            break;
        }
        return {};
    }

    std::size_t length() const
    {
        std::size_t sum = 0;
        for (const examples::block& one : own_side().blocks()) {
            sum += one.length_bytes;
        }
        return sum;
    }

private:
    static constexpr std::uint64_t background = 7;

    const examples::pattern_side& own_side() const { return _is_first ? _pattern->send : _pattern->receive; }

    void share_board()
    {
        std::string path;
        if (_is_first) {
            _shared.emplace(sizeof(progress_board));
            new (_shared->data()) progress_board{};
            path = _shared->path();
        }
        const auto other = _pair.trade(std::as_bytes(std::span(path.c_str(), path.size() + 1)));
        if (!_is_first) {
            _shared.emplace(reinterpret_cast<const char*>(other.data()), sizeof(progress_board));
        }
        _board = reinterpret_cast<progress_board*>(_shared->data());
        _pair.trade(bytes_of(char{})); // the path is that of a process that is still there
    }

    // Connects all lanes, which takes both processes.
    void greet()
    {
        char byte = 0;
        for (int i = 0; i < 4; ++i) {
            if (_is_first == (i % 2 == 0)) {
                _pair.send(&byte, 1);
            } else {
                _pair.receive(&byte, 1);
            }
        }
        _pair.wait_for(flush_all());
    }

    ucs_status_ptr_t flush_all()
    {
        const ucp_request_param_t defaults{};
        return ucp_worker_flush_nbx(_pair.worker(), &defaults);
    }

    finding prepare(unsigned number)
    {
        _methods.clear();
        _memory.reset();
        _pattern = device_patterns().at(number);
        _memory.emplace(own_side());
        _memory->fill(background);
        copy_counter::watch(_memory->arrays(), _memory->array_bytes());
        finding found;
        for (const named_method& known : _known) {
            _methods.push_back(known.make({_pair, _is_first, *_pattern, *_memory}));
            found.num_wrong += check(*_methods.back(), known.name) ? 0 : 1;
        }
        return found;
    }

    // With contents that no other check has.
    bool check(method& by, const char* name)
    {
        const std::uint64_t seed = ++_generation + 1000;
        if (_is_first) {
            _memory->fill(seed);
        }
        _pair.trade(bytes_of(char{}));
        transfer(by);
        _pair.trade(bytes_of(char{}));
        const std::string wrong = _is_first ? "" : verify(*_memory, *_pattern, seed, background);
        if (!wrong.empty()) {
            std::fprintf(stderr, "bench device: %s, %s: %s\n", _pattern->name.c_str(), name, wrong.c_str());
        }
        return wrong.empty();
    }

    // A message is sent when its receive is posted, so that none waits in UCX's buffers. The second process progresses
    // until a put is there: it may go by messages.
    void transfer(method& by)
    {
        const std::uint64_t number = ++_num_transfers;
        if (by.is_put()) {
            if (_is_first) {
                _pair.wait_for(by.start());
                _board->done = number;
            } else {
                await(_board->done, number);
            }
        } else if (_is_first) {
            await(_board->expected, number);
            _pair.wait_for(by.start());
        } else {
            const ucs_status_ptr_t receive = by.start();
            _board->expected               = number;
            _pair.wait_for(receive);
        }
    }

    void await(const std::atomic<std::uint64_t>& current, std::uint64_t number)
    {
        while (current.load(std::memory_order_acquire) < number) {
            _pair.progress();
        }
    }

    // Memory under a window is reached through the window only, and the library copies there by instructions of its
    // own. So one of the counts has all.
    finding count_copies(method& by)
    {
        const std::uint64_t before = by.window_bytes();
        copy_counter::start();
        transfer(by);
        const std::uint64_t by_calls = copy_counter::stop();
        return {.copied = std::max(by_calls, by.window_bytes() - before)};
    }

    ucp_pair& _pair;
    bool _is_first;
    std::span<const named_method> _known;
    std::optional<shared_memory> _shared;
    progress_board* _board = nullptr;
    std::optional<examples::pattern> _pattern;
    std::optional<examples::memory_set> _memory;
    std::vector<std::unique_ptr<method>> _methods;
    std::uint64_t _generation = 0, _num_transfers = 0;
};

constexpr named_method window_methods[] = {{"window-message", window_message}, {"window-put", window_put}};
// The puts come first: they register all memory, which UCX's cache then knows. Otherwise a list has a registration for
// each block, and the device is out of keys.
constexpr named_method stock_methods[] = {
    {"block-puts", block_puts}, {"list-message", list_message}, {"packed-message", packed_message}};

unsigned index_of(std::span<const named_method> methods, const std::string& name)
{
    for (unsigned i = 0; i < methods.size(); ++i) {
        if (methods[i].name == name) {
            return i;
        }
    }
    throw std::runtime_error("no method " + name);
}

class leader
{
public:
    leader(ucp_pair& pair, std::span<const named_method> methods)
        : _pair(pair), _side(pair, true, methods), _known(methods)
    {
    }

    double answer(const std::string& word)
    {
        order given{};
        if (word == "case") {
            given.what = verb::prepare;
            std::cin >> given.number;
            const bool is_right = both(given).num_wrong == 0;
            return is_right ? static_cast<double>(_side.length()) : -1;
        }
        std::string name;
        std::cin >> name;
        given.method = index_of(_known, name);
        if (word == "copied") {
            given.what = verb::copied;
            return static_cast<double>(both(given).copied);
        }
        test::check(word == "run", "no order {}", word);
        given.what = verb::run;
        std::cin >> given.number;
        both(given);
        return 0;
    }

    void end() { _pair.trade(bytes_of(order{.what = verb::end, .method = 0, .number = 0})); }

private:
    finding both(const order& given)
    {
        _pair.trade(bytes_of(given));
        const finding own   = _side.obey(given);
        const finding other = value_of<finding>(_pair.trade(bytes_of(own)));
        return {.copied = own.copied + other.copied, .num_wrong = own.num_wrong + other.num_wrong};
    }

    ucp_pair& _pair;
    side _side;
    std::span<const named_method> _known;
};

void follow(ucp_pair& pair, std::span<const named_method> methods)
{
    side obeying(pair, false, methods);
    for (;;) {
        const order given = value_of<order>(pair.trade(bytes_of(char{})));
        if (given.what == verb::end) {
            return;
        }
        pair.trade(bytes_of(obeying.obey(given)));
    }
}

// The memory type of a window tells who carries it.
bool has_keys(ucp_context_h context, const examples::pattern_side& side)
{
    examples::memory_set memory(side);
    const ucx_layout::window window = make_window(context, side, memory);
    ucp_mem_attr_t found{};
    found.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
    test::check_ok(ucp_mem_query(window.memh(), &found), "ucp_mem_query");
    return found.mem_type == UCS_MEMORY_TYPE_RDMA;
}

void answer_choices()
{
    const test::context context(test::context_options{.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA});
    std::string word;
    for (unsigned number = 0; std::cin >> word >> number;) {
        const examples::pattern pattern = device_patterns().at(number);
        std::cout << (has_keys(context.get(), pattern.send) && has_keys(context.get(), pattern.receive)) << std::endl;
    }
}

void serve(const std::string& kind, int socket, bool is_first)
{
    const auto methods = kind == "windows" ? std::span<const named_method>(window_methods)
                                           : std::span<const named_method>(stock_methods);
    ucp_pair pair(socket, UCP_FEATURE_TAG | UCP_FEATURE_RMA, true);
    if (!is_first) {
        follow(pair, methods);
        return;
    }
    leader leads(pair, methods);
    std::cout.precision(15);
    for (std::string word; std::cin >> word;) {
        const double answer = leads.answer(word);
        std::cout << answer << std::endl;
    }
    leads.end();
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    using namespace ucxl;
    const std::string kind = argc >= 2 ? argv[1] : "";
    if (kind == "auto") {
        try {
            bench::answer_choices();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
            return 1;
        }
        return 0;
    }
    if (kind != "windows" && kind != "stock") {
        std::fprintf(stderr, "usage: bench_device_side windows|stock|auto; `bench device` runs it\n");
        return 2;
    }
    return bench::run_pair(argc, argv, 1, [&](int socket, bool is_first) { bench::serve(kind, socket, is_first); });
}
