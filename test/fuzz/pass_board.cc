// A board of shared passes (src/uct/layout/peer/pass_board.h) while it is in use: the bytes say which steps its two
// requesters and its owner do, one after the other. In one half of the inputs nobody else writes, and then every piece
// of every pass is moved. In the other half a hostile process writes any words between any two steps: nobody takes a
// piece that is none of its pass, or takes one twice, and everybody ends.
#include "fuzz_target.h"

#include "uct/layout/peer/pass_board.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <vector>

using namespace ucxl;
using fuzz::require;

#ifndef UCXL_FUZZ_REPLAY
// There is nobody to wait for: whoever waits asks for the next step, after many of these.
extern "C" int sched_yield() noexcept
{
    return 0;
}

extern "C" int clock_nanosleep(clockid_t, int, const timespec*, timespec*)
{
    return 0;
}
#endif

namespace
{

// All is over when the input is.
class input
{
public:
    explicit input(std::span<const std::uint8_t> bytes) : _bytes(bytes) {}
    bool is_over() const { return _bytes.empty(); }
    std::uint64_t next(std::size_t num_bytes)
    {
        std::uint64_t value     = 0;
        const std::size_t taken = std::min(num_bytes, _bytes.size());
        std::memcpy(&value, _bytes.data(), taken);
        _bytes = _bytes.subspan(taken);
        return value;
    }

private:
    std::span<const std::uint8_t> _bytes;
};

// What was done of a pass.
struct pass_record {
    pass_request request;
    std::vector<bool> is_moved;
};

class board_scene
{
public:
    board_scene(std::span<const std::uint8_t> bytes, bool is_hostile) : _input(bytes), _is_hostile(is_hostile) {}

    void run()
    {
        while (!_input.is_over()) {
            requester& one = _requesters[_input.next(1) % 2];
            switch (_input.next(1) % 4) {
            case 0:
                post(one);
                break;
            case 1:
                take(one);
                break;
            case 2:
                finish(one);
                break;
            default:
                others();
            }
        }
        std::ranges::for_each(_requesters, [this](requester& each) { finish(each); });
    }

private:
    struct requester {
        std::optional<posted_pass> pass;
        std::size_t number = 0; // of its pass_record
        std::uint32_t own  = 0; // pieces that it took
    };

    // A step of the owner or of somebody hostile. False: the owner has ended.
    bool others()
    {
        switch (_input.next(1) % 8) {
        case 0:
        case 1:
            look();
            return true;
        case 2:
        case 3:
            owner_takes();
            return true;
        case 4:
            owner_ends(true);
            return true;
        case 5:
            owner_ends(false);
            return true;
        case 6:
            write();
            return true;
        default:
            _found.reset(); // another one has its board now, with nothing open
            _taken.reset();
            return false;
        }
    }

    void post(requester& one)
    {
        if (one.pass) {
            return;
        }
        pass_request request{};
        request.piece     = 1 + _input.next(2);
        request.length    = request.piece * (1 + _input.next(1)) + _input.next(1) % request.piece;
        request.direction = static_cast<pass_direction>(_input.next(1) % 2);
        request.address   = _records.size(); // so the owner's pieces are told apart
        one.number        = _records.size();
        one.own           = 0;
        _records.push_back({request, std::vector<bool>(num_pieces(request))});
        one.pass.emplace(*_board, request);
    }

    void take(requester& one)
    {
        if (!one.pass) {
            return;
        }
        if (const auto piece = one.pass->take()) {
            pass_record& own = _records[one.number];
            require(*piece == one.own++, "a requester's pieces come one after the other");
            require(*piece < own.is_moved.size(), "a piece of the pass");
            require(_is_hostile || !own.is_moved[*piece], "nobody else moved the piece");
            own.is_moved[*piece] = true;
        }
    }

    void finish(requester& one)
    {
        if (!one.pass) {
            return;
        }
        for (std::uint32_t before = one.own;; before = one.own) {
            take(one);
            if (one.own == before) {
                break;
            }
        }
        pass_record& own = _records[one.number];
        one.pass->finish([this] { return _input.is_over() ? !end_of_owner() : !others(); },
                         [&](std::uint32_t piece) {
                             require(piece >= one.own && piece < own.is_moved.size(), "a piece that others had");
                             own.is_moved[piece] = true;
                         });
        require(_is_hostile || std::ranges::all_of(own.is_moved, [](bool each) { return each; }),
                "every piece is moved");
        one.pass.reset();
    }

    bool end_of_owner()
    {
        _found.reset();
        _taken.reset();
        return false;
    }

    void look()
    {
        if (_taken) {
            return; // it ends what it has
        }
        _found = found_pass::look(_board->slots[_input.next(1) % _board->slots.size()]);
        _last.reset();
        if (_found) {
            const pass_request& request = _found->request();
            require(request.piece > 0 && request.piece <= request.length && num_pieces(request) <= max_pass_pieces,
                    "a sound request");
            require(_is_hostile || request.address < _records.size(), "a request that somebody made");
        }
    }

    void owner_takes()
    {
        if (!_found || _taken) {
            return;
        }
        const auto piece = _found->take();
        if (!piece) {
            return;
        }
        const pass_request& request = _found->request();
        require(*piece < num_pieces(request), "a piece of the pass");
        require(!_last || *piece < *_last, "the owner's pieces become fewer");
        const std::uint64_t at = _found->offset_of(*piece), length = _found->length_of(*piece);
        require(length > 0 && length <= request.piece && at <= request.length - length, "bytes of the pass");
        require(_is_hostile || !_records[request.address].is_moved[*piece], "nobody else moved the piece");
        _taken = _last = piece;
    }

    void owner_ends(bool is_done)
    {
        if (!_taken) {
            return;
        }
        if (is_done && !_is_hostile) {
            _records[_found->request().address].is_moved[*_taken] = true;
        }
        _found->end(is_done);
        _taken.reset();
    }

    void write()
    {
        if (!_is_hostile) {
            return;
        }
        constexpr std::size_t num_words = sizeof(pass_board) / sizeof(std::uint64_t);
        auto* const words               = reinterpret_cast<std::atomic<std::uint64_t>*>(_board.get());
        std::atomic<std::uint64_t>& at  = words[_input.next(2) % num_words];
        const std::uint64_t value       = _input.next(8);
        at.store(value % 2 == 0 ? value : at.load() ^ value);
    }

    input _input;
    const bool _is_hostile;
    const std::unique_ptr<pass_board> _board = std::make_unique<pass_board>();
    std::vector<pass_record> _records;
    std::array<requester, 2> _requesters;
    std::optional<found_pass> _found;
    std::optional<std::uint32_t> _taken, _last; // pieces of the owner
};

} // namespace

UCXL_FUZZ_TARGET(pass_board)
{
    if (size > 0) {
        board_scene({data + 1, size - 1}, data[0] % 2 == 1).run();
    }
    return 0;
}
