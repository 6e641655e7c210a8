// Windows over one piece of shared memory, which holds all arrays of all rows: the other process maps it once, and
// reaches it by put and get as well as by messages.
#pragma once

#include "bench/common/ucp_pair.h"
#include "one_pass.h"
#include "sides.h"

#include "ucs/pack/pack_plan.h"

#include <cstddef>
#include <memory>
#include <ucp_layout.hpp>
#include <vector>

namespace ucxl::bench
{

// The layout of a case as the public interface has it. Throws std::runtime_error.
ucx_layout::layout public_layout(const layout_case& of);

// A window for one message, over the blocks of a list that nobody used before. Throws std::runtime_error.
std::unique_ptr<ucx_layout::window> list_window(const ucp_pair& with, const block_order& list, std::byte* memory);

class mapped_side : public side
{
public:
    // With UCP_FEATURE_TAG and UCP_FEATURE_RMA.
    mapped_side(ucp_pair& with, bool is_first) : _with(with), _pass(is_first) {}

    std::span<std::byte> own_memory(std::size_t length) override;
    side_memory allocate(const layout_case& of, std::span<std::byte> all) override;
    void prepare(const layout_case& of, const side_memory& memory) override;
    void send_packed() override { send(_packed_source); }
    void receive_packed() override { receive(_packed_target); }
    void send_strided() override { send(_source); }
    void receive_strided() override { receive(_target); }
    bool moves_lists() const override { return true; }
    void send_list(const block_order& list) override;
    void receive_list(const block_order& list) override;
    void make_new(std::size_t length, bool is_first) override;
    double use_new() override;
    void progress() override { _with.progress(); }
    bool moves_alone() const override { return true; }
    void move(alone how, bool to_strided) override;
    // Of memory of the library: what it may lie in, and its page tables, are part of the limit.
    bool measures(limit by) const override { return !is_queue(by); }
    void share(std::span<std::byte> both) override
    {
        _pass.share(both.subspan(queue_memory_length, one_pass::flags_length));
    }
    void send_limit(const limit_way&) override { _pass.offer(); }
    void receive_limit(const limit_way& way) override { _pass.take(way); }
    void pass(const limit_way& way) override { _pass.copy(way); }

private:
    // One of this process, and that of the same name of the other one.
    struct twin_window {
        std::unique_ptr<ucx_layout::window> own;
        std::byte* memory = nullptr; // of the own one
        remote_memory other;
    };

    // What the first process knows of memory that it has not used yet.
    struct new_memory {
        std::unique_ptr<ucx_layout::memory> held;  // in the second process
        std::unique_ptr<ucx_layout::window> words; // the same
        std::vector<std::byte> target;             // of the first process, as the others
        std::vector<std::byte> key;                // address, and remote key
        remote_memory unpacked;
    };

    void make(twin_window& window, const ucx_layout::layout& of, std::span<std::byte> memory);
    void trade_keys(twin_window& window);
    void send(const twin_window& from) { _with.send(from.own->address(), from.own->length()); }
    void receive(const twin_window& to) { _with.receive(to.own->address(), to.own->length()); }
    void put(const twin_window& from, const twin_window& to);
    void get(const twin_window& from, const twin_window& to);
    void copy(bool to_strided);

    ucp_pair& _with;
    one_pass _pass;
    pack_plan_ptr _plan;
    twin_window _source, _target, _packed_source, _packed_target;
    new_memory _new;
};

} // namespace ucxl::bench
