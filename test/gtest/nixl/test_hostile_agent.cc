// What an agent answers is bytes from outside: a worker ends the transfer with an error, whatever they say.
#include "nixl/active_messages.h"
#include "nixl/worker.h"
#include "support/must.h"
#include "support/wait_until.h"

#include <gtest/gtest.h>

#include <list>
#include <string>
#include <vector>

using namespace ucxl::nixl;
using ucxl::test::must;

namespace
{

constexpr std::size_t length         = 64;
constexpr std::uint64_t region_there = 5; // of the hostile agent

// 8 of every 16 bytes of 2 * length.
block_list blocks_of(std::uint64_t region)
{
    block_list made;
    for (std::uint64_t at = 0; at < 2 * length; at += 16) {
        made.add(region, at, 8);
    }
    return made;
}

// Shows its window as an honest agent does, and then tells of each piece that it has ended with `status`.
class hostile_agent
{
public:
    // Answers as the agent `instance`, and says that its window is reached by `way`.
    explicit hostile_agent(std::int32_t status, std::uint64_t instance = own_instance, reach way = reach::messages)
        : _status(status), _instance(instance), _way(way)
    {
        ucp_params_t params{};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features   = UCP_FEATURE_RMA | UCP_FEATURE_AM;
        EXPECT_EQ(ucp_init(&params, nullptr, &_context), UCS_OK);
        ucp_worker_params_t worker_params{};
        EXPECT_EQ(ucp_worker_create(_context, &worker_params, &_worker), UCS_OK);
        ucp_mem_map_params_t map_params{};
        map_params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        map_params.address    = _memory.data();
        map_params.length     = _memory.size();
        EXPECT_EQ(ucp_mem_map(_context, &map_params, &_memh), UCS_OK);
        handle(message_id, take_message);
        handle(data_id, take_data);
    }

    ~hostile_agent()
    {
        ucp_mem_unmap(_context, _memh);
        ucp_worker_destroy(_worker);
        ucp_cleanup(_context);
    }

    hostile_agent(const hostile_agent&)            = delete;
    hostile_agent& operator=(const hostile_agent&) = delete;

    std::string connection() const
    {
        ucp_address_t* address = nullptr;
        std::size_t size       = 0;
        EXPECT_EQ(ucp_worker_get_address(_worker, &address, &size), UCS_OK);
        auto bytes = encode(connection_info{.instance = own_instance,
                                            .process  = ucxl::process_identity::own(),
                                            .address  = std::string(reinterpret_cast<const char*>(address), size)});
        ucp_worker_release_address(_worker, address);
        return bytes;
    }

    static constexpr std::uint64_t own_instance = 7;
    static constexpr std::uint64_t many         = ~std::uint64_t{0}; // endpoints

    void progress() { ucp_worker_progress(_worker); }
    // Before it shows its window, with these as its metadata.
    void greet_with(std::string metadata) { _greetings.push_back(std::move(metadata)); }
    // Of pieces that it has told about.
    unsigned num_told() const { return _num_told; }

private:
    void handle(unsigned id, ucp_am_recv_callback_t call)
    {
        const auto handler = handler_of(id, call, this);
        EXPECT_EQ(ucp_worker_set_am_recv_handler(_worker, &handler), UCS_OK);
    }

    // As an honest agent does it.
    void greet_back(const message& greeting)
    {
        const auto info = decode_connection(greeting.bytes);
        ASSERT_TRUE(info);
        const std::string address = info->address + std::string(32768, '\0'); // UCP follows the numbers in it
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address    = reinterpret_cast<const ucp_address_t*>(address.data());
        ucp_ep_h made     = nullptr;
        ASSERT_EQ(ucp_ep_create(_worker, &params, &made), UCS_OK);
        send(made, {.kind = message_kind::greeting, .piece = greeting.piece, .bytes = connection()});
    }

    // The bytes have to stay until they are sent.
    void send(ucp_ep_h to, message content)
    {
        content.sender = content.kind == message_kind::moved ? _instance : own_instance;
        _num_told += content.kind == message_kind::moved;
        const auto& bytes = _sent.emplace_back(encode(content));
        ucp_request_param_t param{};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags        = UCP_AM_SEND_FLAG_EAGER;
        const auto call    = ucp_am_send_nbx(to, message_id, nullptr, 0, bytes.data(), bytes.size(), &param);
        if (UCS_PTR_IS_PTR(call)) {
            ucp_request_free(call);
        }
    }

    static ucs_status_t take_message(void* self, const void* /*header*/, std::size_t /*header_length*/, void* data,
                                     std::size_t size, const ucp_am_recv_param_t* param)
    {
        auto& agent      = *static_cast<hostile_agent*>(self);
        const auto asked = decode({static_cast<const char*>(data), size});
        if (asked && asked->kind == message_kind::greeting) {
            agent.greet_back(*asked);
        } else if (asked && asked->kind == message_kind::show) {
            void* key            = nullptr;
            std::size_t key_size = 0;
            for (const auto& each : agent._greetings) {
                agent.send(param->reply_ep, {.kind = message_kind::greeting, .piece = many, .bytes = each});
            }
            EXPECT_EQ(ucp_rkey_pack(agent._context, agent._memh, &key, &key_size), UCS_OK);
            agent.send(param->reply_ep, {.kind    = message_kind::shown,
                                         .window  = asked->window,
                                         .way     = agent._way,
                                         .address = reinterpret_cast<std::uint64_t>(agent._memory.data()),
                                         .length  = asked->length,
                                         .bytes   = std::string(static_cast<const char*>(key), key_size)});
            ucp_rkey_buffer_release(key);
        } else if (asked && asked->kind == message_kind::fetch) {
            agent.send(param->reply_ep, {.kind = message_kind::moved, .status = agent._status, .piece = asked->piece});
        }
        return UCS_OK;
    }

    static ucs_status_t take_data(void* self, const void* header, std::size_t header_length, void* /*data*/,
                                  std::size_t /*size*/, const ucp_am_recv_param_t* param)
    {
        auto& agent      = *static_cast<hostile_agent*>(self);
        const auto piece = decode_data({static_cast<const char*>(header), header_length});
        EXPECT_TRUE(piece.has_value());
        agent.send(param->reply_ep, {.kind = message_kind::moved, .status = agent._status, .piece = piece->piece});
        return UCS_OK;
    }

    std::int32_t _status;
    std::uint64_t _instance;
    reach _way;
    unsigned _num_told = 0;
    std::vector<std::byte> _memory{length};
    ucp_context_h _context = nullptr;
    ucp_worker_h _worker   = nullptr;
    ucp_mem_h _memh        = nullptr;
    std::vector<std::string> _greetings;
    std::list<std::string> _sent;
};

class nixl_hostile_agent : public testing::TestWithParam<direction>
{
protected:
    // The end of a transfer of 8 of every 16 bytes, or UCS_INPROGRESS if it has none after the agent told one.
    static ucs_status_t end_of_transfer_with(std::int32_t status)
    {
        hostile_agent hostile(status);
        return end_of_transfer_with(hostile);
    }

    static ucs_status_t end_of_transfer_with(hostile_agent& hostile)
    {
        std::vector<std::byte> memory(2 * length);
        const auto self = worker::create("self");
        const auto own  = self->add_region(memory.data(), memory.size(), sharing::never);
        EXPECT_EQ(self->connect("hostile", hostile.connection()), UCS_OK);
        const auto moved =
            must(self->prepare(GetParam(), blocks_of(own->info().id), "hostile", blocks_of(region_there)));
        self->post(*moved, std::nullopt);
        // An answer has arrived when some more rounds have done nothing.
        unsigned rounds_after = 0;
        EXPECT_TRUE(ucxl::test::wait_until([&] {
            hostile.progress();
            rounds_after += hostile.num_told() > 0;
            return self->check(*moved) != UCS_INPROGRESS || rounds_after > 1000;
        }));
        return self->check(*moved);
    }
};

} // namespace

TEST_P(nixl_hostile_agent, that_tells_an_end_that_is_none_fails_the_transfer)
{
    EXPECT_EQ(end_of_transfer_with(UCS_INPROGRESS), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(end_of_transfer_with(1000), UCS_ERR_INVALID_PARAM); // a ucs_status_t has one byte
    EXPECT_EQ(end_of_transfer_with(256), UCS_ERR_INVALID_PARAM);
}

TEST_P(nixl_hostile_agent, that_tells_an_error_fails_the_transfer_with_it)
{
    EXPECT_EQ(end_of_transfer_with(UCS_ERR_NO_ELEM), UCS_ERR_NO_ELEM);
}

// Numbers of pieces are counted, so another agent may guess them; it does not know the instance.
TEST_P(nixl_hostile_agent, that_answers_for_another_one_ends_no_transfer)
{
    hostile_agent other(UCS_ERR_NO_ELEM, 8);
    EXPECT_EQ(end_of_transfer_with(other), UCS_INPROGRESS);
    EXPECT_GT(other.num_told(), 0u);
}

TEST_P(nixl_hostile_agent, that_greets_with_metadata_of_others_or_twice_is_like_one_that_does_not)
{
    hostile_agent hostile(UCS_ERR_NO_ELEM);
    auto damaged = hostile.connection();
    damaged.back() ^= 1;
    auto of_another     = decode_connection(hostile.connection()).value();
    of_another.instance = hostile_agent::own_instance + 1;
    for (const auto& each : {std::string(), damaged, encode(of_another), hostile.connection(), hostile.connection()}) {
        hostile.greet_with(each);
    }
    EXPECT_EQ(end_of_transfer_with(hostile), UCS_ERR_NO_ELEM);
}

// Without the kernel's copies UCP moves bytes of memory that is no window by messages, which wait for the agent.
TEST(nixl_slow_agent, that_is_disconnected_keeps_the_key_of_its_window_until_what_runs_has_ended)
{
    setenv("UCX_TLS", "posix,lay_copy", 1);
    hostile_agent slow(UCS_OK, hostile_agent::own_instance, reach::everywhere);
    std::vector<std::byte> memory(2 * length);
    const auto self = worker::create("self");
    unsetenv("UCX_TLS");
    const auto own = self->add_region(memory.data(), memory.size(), sharing::never);
    ASSERT_EQ(self->connect("slow", slow.connection()), UCS_OK);
    const auto moved = must(self->prepare(direction::read, blocks_of(own->info().id), "slow", blocks_of(region_there)));
    self->post(*moved, std::nullopt);
    ASSERT_TRUE(ucxl::test::wait_until([&] {
        slow.progress();
        return self->check(*moved) != UCS_INPROGRESS || !moved->running.empty();
    }));
    ASSERT_EQ(moved->running.size(), 1u) << ucs_status_string(self->check(*moved));
    const auto running = moved->running.front();
    EXPECT_EQ(self->disconnect("slow"), UCS_OK);
    EXPECT_NE(running->key, nullptr);
    EXPECT_EQ(moved->remote->key, nullptr);
    EXPECT_TRUE(ucxl::test::wait_until([&] {
        slow.progress();
        return self->check(*moved) != UCS_INPROGRESS;
    }));
    EXPECT_EQ(self->check(*moved), UCS_ERR_NOT_CONNECTED);
}

INSTANTIATE_TEST_SUITE_P(of, nixl_hostile_agent, testing::Values(direction::write, direction::read),
                         [](const auto& each) {
                             return std::string(each.param == direction::write ? "writes" : "reads");
                         });
