// What another agent may send to an agent of NIXL (src/nixl): any messages and data, by UCX, while a transfer with that
// agent is prepared and posted. Memory beside what is registered never changes, and the transfer ends when the other
// agent is disconnected.
//
// The other agent is a second worker of this process. Its keys are right: what other packed keys say is UCX's matter.
#include "fuzz_target.h"

#include "nixl/active_messages.h"
#include "nixl/worker.h"
#include "support/check.h"
#include "support/leak_checks.h"
#include "support/ucp.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ucxl::nixl
{
namespace
{

using fuzz::require;

constexpr std::size_t length = 512; // of each region, between margins as long
constexpr std::byte mark{0xa5};
constexpr std::uint64_t num_instances = 4; // of the other agent

// Of transfers: rows of blocks, whose length the input chooses.
constexpr std::size_t num_rows = 8, row_stride = 64, num_block_lengths = 8;

constexpr std::size_t block_length(std::size_t chosen)
{
    return 8 + chosen % num_block_lengths;
}

// Registered memory of the agent, and what lies beside it.
class watched_region
{
public:
    explicit watched_region(worker& owner) : _region(owner.add_region(_memory.data() + length, length, sharing::never))
    {
        std::ranges::fill(_memory, mark);
    }

    std::uint64_t id() const { return _region->info().id; }

    bool is_right_beside() const
    {
        const auto is_marked = [](std::byte each) { return each == mark; };
        const std::span all(_memory);
        return std::ranges::all_of(all.first(length), is_marked) && std::ranges::all_of(all.last(length), is_marked);
    }

private:
    std::array<std::byte, 3 * length> _memory{};
    std::shared_ptr<region> _region;
};

// What the other agent answers to: the last numbers that it was told.
struct heard_numbers {
    std::uint64_t window = 0;
    std::uint64_t piece  = 0;
};

ucs_status_t hear_message(void* heard, const void* /*header*/, std::size_t /*header_length*/, void* data,
                          std::size_t size, const ucp_am_recv_param_t* param)
{
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        return UCS_OK;
    }
    if (const auto told = decode({static_cast<const char*>(data), size})) {
        auto& numbers  = *static_cast<heard_numbers*>(heard);
        numbers.window = told->window != 0 ? told->window : numbers.window;
        numbers.piece  = told->piece != 0 ? told->piece : numbers.piece;
    }
    return UCS_OK;
}

ucs_status_t hear_data(void* heard, const void* header, std::size_t header_length, void* /*data*/, std::size_t /*size*/,
                       const ucp_am_recv_param_t* /*param*/)
{
    if (const auto told = decode_data({static_cast<const char*>(header), header_length})) {
        static_cast<heard_numbers*>(heard)->piece = told->piece;
    }
    return UCS_OK;
}

// A window of the other agent, for transfers with blocks of one length.
struct own_window {
    ucx_layout::window window;
    std::string key;
};

own_window window_of_rows(ucp_context_h context, std::size_t length_of_block)
{
    const auto rows = ucx_layout::layout::create_strided(length_of_block, {{num_rows, row_stride}});
    require(rows.has_value(), "a layout of rows");
    auto made = ucx_layout::window::allocate(context, *rows);
    require(made.has_value(), "a window of the other agent");
    const auto key = test::pack_key(context, made->memh());
    return {.window = std::move(*made), .key = {reinterpret_cast<const char*>(key.data()), key.size()}};
}

struct target_process {
    std::unique_ptr<worker> agent = worker::create("agent");
    std::array<watched_region, 2> regions{watched_region(*agent), watched_region(*agent)};
    test::context other_context{
        {.features = UCP_FEATURE_RMA | UCP_FEATURE_AM, .config = {{"TLS", "posix,lay_shm,lay_copy"}}}};
    ucp_worker_h other = test::open_worker(other_context.get());
    ucp_ep_h to_agent  = nullptr;
    std::vector<own_window> windows; // by chosen length of the blocks
    heard_numbers heard;
    std::list<std::string> sent; // of the present input
    std::list<void*> unended;    // requests of that
    std::uint64_t num_connections = 0;

    // Another one than in the last inputs: nothing of these is left.
    std::uint64_t instance() const { return 1000 + num_connections % num_instances; }

    // What it sends stays until the next input. A rendezvous sends the body only when the agent asks for it.
    void send(unsigned id, std::string header, std::string body, bool is_rendezvous = false)
    {
        const std::string& kept_header = sent.emplace_back(std::move(header));
        const std::string& kept_body   = sent.emplace_back(std::move(body));
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags        = UCP_AM_SEND_FLAG_REPLY | (is_rendezvous ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER);
        const auto call    = ucp_am_send_nbx(to_agent, id, kept_header.data(), kept_header.size(), kept_body.data(),
                                             kept_body.size(), &param);
        if (UCS_PTR_IS_PTR(call)) {
            unended.push_back(call);
        }
    }

    // Of the present input.
    void end_requests()
    {
        for (void* const each : unended) {
            for (int round = 0; round < 1000 && ucp_request_check_status(each) == UCS_INPROGRESS; ++round) {
                progress();
            }
            require(ucp_request_check_status(each) != UCS_INPROGRESS, "what was sent is taken or refused");
            ucp_request_free(each);
        }
        unended.clear();
        sent.clear();
    }

    target_process()
    {
        const auto for_messages = handler_of(message_id, hear_message, &heard);
        const auto for_data     = handler_of(data_id, hear_data, &heard);
        test::check_ok(ucp_worker_set_am_recv_handler(other, &for_messages), "a handler of messages");
        test::check_ok(ucp_worker_set_am_recv_handler(other, &for_data), "a handler of data");
        for (std::size_t chosen = 0; chosen < num_block_lengths; ++chosen) {
            windows.push_back(window_of_rows(other_context.get(), block_length(chosen)));
        }
        const auto known   = decode_connection(agent->connection());
        const auto address = std::as_bytes(std::span(known->address));
        to_agent           = test::connect(other, {address.begin(), address.end()});
    }

    void progress()
    {
        for (int round = 0, quiet = 0; round < 200 && quiet < 3; ++round) {
            const bool is_agent_busy = agent->progress();
            quiet                    = ucp_worker_progress(other) != 0 || is_agent_busy ? 0 : quiet + 1;
        }
    }

    void connect() { fuzz::require(agent->connect("other", connection()) == UCS_OK, "an honest agent connects"); }
    // The agent asks for windows after that.
    void greet()
    {
        send(message_id, "",
             encode(message{.kind = message_kind::greeting, .sender = instance(), .piece = 1, .bytes = connection()}));
    }
    void disconnect() { fuzz::require(agent->disconnect("other") == UCS_OK, "it disconnects"); }

    std::string connection()
    {
        const auto address = test::address_of(other);
        return encode(
            connection_info{.instance = instance(),
                            .process  = process_identity::own(),
                            .address  = std::string(reinterpret_cast<const char*>(address.data()), address.size())});
    }
};

class reader : public fuzz::byte_reader
{
public:
    using byte_reader::byte_reader;

    std::string text(std::size_t wanted)
    {
        const auto bytes = part(wanted);
        return std::string(bytes.begin(), bytes.end());
    }
    // Often one that the other side knows.
    std::uint64_t number_like(std::uint64_t known) { return byte() % 4 != 0 ? known : number(); }
    // Small ones are as likely as others.
    std::uint64_t number()
    {
        const std::uint8_t kind = byte();
        if (kind < 192) {
            return kind % 16;
        }
        std::uint64_t value = 0;
        const auto bytes    = text(sizeof(value));
        std::memcpy(&value, bytes.data(), bytes.size());
        return kind < 224 ? value % (2 * length) : value;
    }
};

std::string serialized(const ucx_layout::layout& layout)
{
    std::array<std::byte, 512> bytes;
    const auto used = layout.serialize(bytes);
    require(used.has_value(), "a layout of one block or one row is short");
    return std::string(reinterpret_cast<const char*>(bytes.data()), *used);
}

// Layouts inside and outside of the regions, and any bytes.
std::string some_layout(reader& input)
{
    const std::uint8_t kind = input.byte();
    if (kind % 4 == 3) {
        return input.text(kind);
    }
    const std::size_t block  = input.number();
    const std::size_t number = input.number();
    const auto stride        = static_cast<std::ptrdiff_t>(input.number());
    const auto made          = ucx_layout::layout::create_strided(block, {{number, stride}});
    std::string bytes        = made ? serialized(*made) : std::string();
    if (kind % 4 == 2 && !bytes.empty()) {
        bytes[input.byte() % bytes.size()] = static_cast<char>(input.byte());
    }
    return bytes;
}

message some_message(reader& input, target_process& process)
{
    message made{.kind    = static_cast<message_kind>(input.byte() % 6 + 1),
                 .sender  = input.byte() % 8 == 0 ? input.number() : process.instance(),
                 .window  = input.number_like(process.heard.window),
                 .status  = static_cast<std::int32_t>(input.number()),
                 .way     = static_cast<reach>(input.byte() % 4),
                 .address = input.number(),
                 .length  = input.number(),
                 .piece   = input.number_like(process.heard.piece)};
    if (made.kind == message_kind::show) {
        for (std::uint8_t left = input.byte() % 4; left > 0; --left) {
            const std::uint8_t which = input.byte();
            made.regions.push_back(which < 200 ? process.regions[which % 2].id() : input.number());
        }
        made.bytes = some_layout(input);
    } else if (made.kind == message_kind::notice) {
        made.name  = input.text(input.byte() % 16);
        made.bytes = input.text(input.byte());
    }
    if (made.kind == message_kind::shown && made.status == UCS_OK) {
        const own_window& shown = process.windows[input.byte() % num_block_lengths];
        made.bytes              = shown.key;
        made.length             = input.number_like(shown.window.length());
        made.address            = input.number_like(reinterpret_cast<std::uint64_t>(shown.window.address()));
    }
    return made;
}

void send_something(reader& input, target_process& process)
{
    const std::uint8_t kind  = input.byte();
    const bool is_rendezvous = kind >= 192;
    switch (kind % 4) {
    case 0: {
        const data_header header{.sender = input.byte() % 8 == 0 ? input.number() : process.instance(),
                                 .window = input.number(),
                                 .offset = input.number(),
                                 .piece  = input.number_like(process.heard.piece)};
        process.send(data_id, encode(header), input.text(input.number() % (2 * length)), is_rendezvous);
        break;
    }
    case 1: {
        std::string bytes = encode(some_message(input, process));
        for (std::uint8_t left = input.byte() % 4; left > 0; --left) {
            bytes[input.number() % bytes.size()] = static_cast<char>(input.byte());
        }
        bytes.resize(input.byte() % 8 == 0 ? input.number() % (bytes.size() + 1) : bytes.size());
        if (const auto changed = decode(bytes);
            changed && changed->kind == message_kind::shown && changed->status == UCS_OK) {
            break; // with a key that may be another one
        }
        const bool is_data = input.byte() % 16 == 0;
        process.send(is_data ? data_id : message_id, is_data ? bytes : "", is_data ? "" : bytes, is_rendezvous);
        break;
    }
    default:
        process.send(message_id, "", encode(some_message(input, process)), is_rendezvous);
    }
}

transfer_ptr posted(reader& input, target_process& process)
{
    const std::uint8_t kind = input.byte();
    if (kind % 4 == 0) {
        return nullptr;
    }
    block_list here, there;
    for (std::uint64_t at = 0; at < num_rows * row_stride; at += row_stride) {
        here.add(process.regions[0].id(), at, block_length(kind));
        there.add(1, at, block_length(kind));
    }
    auto made = process.agent->prepare(kind % 2 == 0 ? direction::read : direction::write, here, "other", there);
    require(made.has_value(), "a transfer with an agent that is connected can be prepared");
    process.agent->post(**made, std::nullopt);
    return std::move(*made);
}

// After the agent was disconnected.
void require_end_of(const transfer_ptr& xfer, target_process& process)
{
    for (int i = 0; i < 1000 && xfer != nullptr && process.agent->check(*xfer) == UCS_INPROGRESS; ++i) {
        process.progress();
    }
    require(xfer == nullptr || process.agent->check(*xfer) != UCS_INPROGRESS, "a transfer ends with its agent");
    process.progress();
}

// Its endpoints are used once: UCX makes what belongs to them at their first messages, in memory that is not searched
// for pointers. They stay, and are used again.
target_process& only_process()
{
    static target_process& only = [] -> target_process& {
        const test::leaks_of_others unseen;
        auto& made = *new target_process; // never destroyed
        for (; made.num_connections < num_instances; ++made.num_connections) {
            made.connect();
            const std::uint8_t write = 1;
            reader input(std::span(&write, 1));
            const transfer_ptr xfer = posted(input, made);
            made.greet();
            made.send(message_id, "", "no message");
            made.progress();
            made.disconnect();
            require_end_of(xfer, made);
        }
        return made;
    }();
    return only;
}

} // namespace
} // namespace ucxl::nixl

using namespace ucxl;
using namespace ucxl::nixl;

UCXL_FUZZ_TARGET(nixl_messages)
{
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    if (const auto region = decode_region(bytes)) {
        const auto back = decode_region(encode(*region));
        fuzz::require(back && back->id == region->id && back->address == region->address &&
                          back->length == region->length,
                      "what is known of a region comes back from its bytes");
    }
    target_process& process = only_process();
    reader input(std::span(data, size));
    ++process.num_connections;
    process.connect();
    const transfer_ptr xfer = posted(input, process);
    while (!input.is_empty()) {
        send_something(input, process);
        process.progress();
    }
    process.disconnect();
    require_end_of(xfer, process);
    process.agent->take_notices();
    process.end_requests();
    for (const watched_region& each : process.regions) {
        fuzz::require(each.is_right_beside(), "memory beside a region does not change");
    }
    return 0;
}
