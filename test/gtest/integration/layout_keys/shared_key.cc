#include "shared_key.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <format>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "line_channel.h"
#include "raw_binds.h"
#include "support/verbs_pair.h"
#include "uct/ib/mlx5/layout/vhca_access.h"

namespace ucxl::test
{

namespace
{

constexpr std::uint32_t piece_bytes = 64;
constexpr std::size_t most_keys     = 70000; // that are made to get a number again
constexpr std::size_t timed_keys    = 100;   // whose opening and binding is timed
constexpr std::size_t batch         = 10;    // binds that are posted together

template <typename Value>
Value checked(result<Value>&& result)
{
    if (!result) {
        throw std::runtime_error(result.error().message);
    }
    return std::move(*result);
}

std::string text_of(const mlx5::access_token& token)
{
    std::string text;
    for (const std::byte each : token) {
        text += std::format("{:02x}", std::to_integer<unsigned>(each));
    }
    return text;
}

mlx5::access_token token_of(const std::string& text)
{
    mlx5::access_token token{};
    for (std::size_t i = 0; i < token.size() && 2 * i + 1 < text.size(); ++i) {
        token[i] = static_cast<std::byte>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
    }
    return token;
}

// Of one call, in microseconds.
template <typename Call>
double time_of(const Call& call)
{
    const auto begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> times)
{
    std::ranges::nth_element(times, times.begin() + std::ssize(times) / 2);
    return times[times.size() / 2];
}

class owner
{
public:
    owner()
    {
        for (std::size_t i = 0; i < _memory.size(); ++i) {
            _memory[i] = static_cast<std::uint8_t>(i / piece_bytes);
        }
        _mr = _pair.registered(_memory.data(), _memory.size());
    }

    void serve()
    {
        line_channel peer = line_channel::inherited();
        for (std::string asked = peer.receive(); asked != "end"; asked = peer.receive()) {
            peer.send(answer_to(asked));
        }
    }

private:
    std::string answer_to(const std::string& asked)
    {
        std::istringstream words(asked);
        std::string step;
        std::size_t piece = 0;
        words >> step >> piece;
        if (step == "create") {
            create();
            return std::format("{} {} {}", _binds.said().vhca_id, _key->number(), text_of(_token));
        }
        if (step == "bind") {
            const std::array entries{mlx5::resolved_entry{
                _mr->lkey, reinterpret_cast<std::uintptr_t>(_memory.data()) + piece * piece_bytes, piece_bytes, 0}};
            return ibv_wc_status_str(_binds.execute(_binds.list(*_key, entries)));
        }
        if (step == "invalidate") {
            return ibv_wc_status_str(_binds.execute(_binds.invalidation(*_key, _binds.flags())));
        }
        if (step == "destroy") {
            _number = _key->number();
            _key.reset();
            return "done";
        }
        if (step == "times") {
            return times();
        }
        return step == "again" ? number_again() : "no such step";
    }

    // Keys that the other process makes aliases of, and how long opening and binding each took.
    std::string times()
    {
        std::vector<double> opened;
        std::string numbers;
        for (std::size_t i = 0; i < timed_keys; ++i) {
            const auto& key = _timed.emplace_back(std::make_unique<raw_key>(_pair.pd(), 4));
            opened.push_back(time_of([&] { worked(mlx5::allow_access(_pair.context(), key->number(), _token)); }));
            numbers += std::format(" {}", key->number());
        }
        const std::array entries{
            mlx5::resolved_entry{_mr->lkey, reinterpret_cast<std::uintptr_t>(_memory.data()), piece_bytes, 0}};
        std::vector<double> bound;
        for (std::size_t i = 0; i < timed_keys; i += batch) {
            std::vector<mlx5::request_bytes> requests;
            for (std::size_t k = i; k < i + batch; ++k) {
                requests.push_back(_binds.list(*_timed[k], entries));
            }
            bound.push_back(time_of([&] {
                                if (_binds.execute(requests) != IBV_WC_SUCCESS) {
                                    throw std::runtime_error("binding opened keys");
                                }
                            }) /
                            batch);
        }
        return std::format("{} {}{}", median(opened), median(bound), numbers);
    }

    static void worked(const result<void>& done)
    {
        if (!done) {
            throw std::runtime_error(done.error().message);
        }
    }

    void create()
    {
        _key = std::make_unique<raw_key>(_pair.pd(), 4);
        worked(mlx5::allow_access(_pair.context(), _key->number(), _token));
    }

    // A new key with the number of the one that was destroyed, as an alias sees it: without its low byte.
    std::string number_again()
    {
        std::vector<std::unique_ptr<raw_key>> others;
        for (std::size_t i = 0; i < most_keys; ++i) {
            auto key = std::make_unique<raw_key>(_pair.pd(), 4);
            if (key->number() >> 8 == _number >> 8) {
                _key = std::move(key);
                if (!mlx5::allow_access(_pair.context(), _key->number(), _token)) {
                    return "refused";
                }
                return "again";
            }
            if (i % 256 == 255) {
                others.clear(); // a device has not that many
            }
            others.push_back(std::move(key));
        }
        return "never";
    }

    verbs_pair _pair;
    raw_binds _binds{_pair};
    std::vector<std::uint8_t> _memory = std::vector<std::uint8_t>(4096);
    ibv_mr* _mr                       = nullptr;
    mlx5::access_token _token         = checked(mlx5::random_token());
    std::unique_ptr<raw_key> _key;
    std::vector<std::unique_ptr<raw_key>> _timed;
    std::uint32_t _number = 0;
};

class user
{
public:
    void run()
    {
        std::istringstream about(ask("create"));
        std::uint32_t key = 0;
        std::string token;
        about >> _vhca_id >> key >> token;
        _token = token_of(token);
        _alias.emplace(alias_of(key));
        ask("bind 1");
        const bool followed = shows(1);
        ask("invalidate");
        const bool refused = !shows(1) && _last != IBV_WC_SUCCESS;
        ask("bind 2");
        const bool followed_again = shows(2);
        judge_chain(2);
        print(44, followed && followed_again, "an alias of a key before its first binding, then of two bindings");
        print(45, followed && refused,
              std::format("after the invalidation: {}", ibv_wc_status_str(_after_invalidation)));
        ask("destroy");
        const bool gone = !shows(2) && _last != IBV_WC_SUCCESS;
        judge_destroyed(followed_again && gone);
        tell_times();
        _peer.send("end");
    }

private:
    mlx5::key_alias alias_of(std::uint32_t key)
    {
        return checked(mlx5::key_alias::create(_pair.pd(), _vhca_id, key, _token));
    }

    // Keys of this function over the alias. The host's key is one level of keys, so if the alias is none, one less than
    // the device says can lie over it.
    void judge_chain(std::uint8_t piece)
    {
        raw_binds binds(_pair);
        const unsigned levels = binds.said().limits.max_nesting;
        std::vector<std::unique_ptr<raw_key>> chain;
        std::uint32_t top = _alias->key();
        const auto add    = [&] {
            chain.push_back(std::make_unique<raw_key>(_pair.pd(), 4));
            const std::array entries{mlx5::resolved_entry{top, 0, piece_bytes, 0}};
            top = chain.back()->number();
            return binds.execute(binds.list(*chain.back(), entries)) == IBV_WC_SUCCESS;
        };
        bool is_bound = true;
        while (chain.size() + 1 < levels) {
            is_bound = add() && is_bound;
        }
        const auto over  = chain.size();
        const bool works = is_bound && shows(piece, top);
        const auto why   = ibv_wc_status_str(_last);
        const bool more  = add() && shows(piece, top);
        print(14, works,
              works
                  ? std::format("{} over the alias; one more {}", over, more ? "works, too" : "does not work")
                  : std::format("{} over the alias of a key, where the device says {} levels: {}", over, levels, why));
    }

    void tell_times()
    {
        std::istringstream told(ask("times"));
        double open_us = 0;
        double bind_us = 0;
        std::vector<mlx5::key_alias> aliases;
        std::vector<double> made;
        told >> open_us >> bind_us;
        for (std::uint32_t key = 0; told >> key;) {
            made.push_back(time_of([&] { aliases.push_back(alias_of(key)); }));
        }
        std::printf("47 times open_us=%f alias_us=%f bind_us=%f\n", open_us, median(made), bind_us);
    }

    void judge_destroyed(bool is_right)
    {
        const std::string got = ask("again");
        if (got != "again") {
            std::printf("12 %s\n", is_right ? std::format("skipped refused without the key; another key of its number: "
                                                          "{}",
                                                          got)
                                                  .c_str()
                                            : "differs an alias works without its key");
            return;
        }
        ask("bind 3");
        print(12, is_right && !shows(3) && _last != IBV_WC_SUCCESS, "with another key of the same number and token");
    }

    static void print(int claim, bool holds, const std::string& note)
    {
        std::printf("%d %s %s\n", claim, holds ? "ok" : "differs", note.c_str());
    }

    std::string ask(const std::string& step)
    {
        _peer.send(step);
        return _peer.receive();
    }

    // Whether a read by the alias gets that piece of the host's memory.
    bool shows(std::uint8_t piece)
    {
        const bool is_shown = shows(piece, _alias->key());
        if (_last != IBV_WC_SUCCESS && _after_invalidation == IBV_WC_SUCCESS) {
            _after_invalidation = _last;
        }
        return is_shown;
    }

    // The same by another key. The queue pair works afterwards.
    bool shows(std::uint8_t piece, std::uint32_t key)
    {
        _got.fill(0xff);
        _last = _pair.read({reinterpret_cast<std::uintptr_t>(_got.data()), piece_bytes, _mr->lkey}, 0, key);
        if (_last != IBV_WC_SUCCESS) {
            _pair.reconnect();
            return false;
        }
        return std::ranges::all_of(_got, [&](std::uint8_t each) { return each == piece; });
    }

    line_channel _peer = line_channel::inherited();
    verbs_pair _pair;
    std::array<std::uint8_t, piece_bytes> _got{};
    ibv_mr* _mr            = _pair.registered(_got.data(), _got.size());
    std::uint16_t _vhca_id = 0;
    mlx5::access_token _token{};
    std::optional<mlx5::key_alias> _alias;
    ibv_wc_status _last               = IBV_WC_SUCCESS;
    ibv_wc_status _after_invalidation = IBV_WC_SUCCESS; // the first refusal
};

template <typename Part>
int guarded(const Part& part)
{
    try {
        part();
        return 0;
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "%s\n", failed.what());
        return 1;
    }
}

} // namespace

int key_owner()
{
    return guarded([] { owner().serve(); });
}

int key_user()
{
    return guarded([] { user().run(); });
}

} // namespace ucxl::test
