// ucp_layout_datatype: what is sent and received through a layout as a generic datatype.
#include "support/log_guard.h"
#include "support/must.h"
#include "support/random.h"
#include "support/ucp_pair.h"

#include <gtest/gtest.h>
#include <ucp_layout.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>

namespace
{

using ucx_layout::datatype;
using ucx_layout::layout;
using ucxl::test::contiguous;
using ucxl::test::must;
using ucxl::test::ucp_pair;
using ucxl::test::ucx_test;

std::vector<unsigned char> random_bytes(std::size_t count)
{
    ucxl::test::random random(ucxl::test::run_seed());
    std::vector<unsigned char> bytes(count);
    std::ranges::generate(bytes, [&] { return static_cast<unsigned char>(random.next()); });
    return bytes;
}

class datatype_of : public ucx_test, public testing::WithParamInterface<std::size_t>
{
protected:
    static constexpr std::size_t rows = 50, block = 12, stride = 40;
    static constexpr std::size_t extent = (rows - 1) * stride + block;

    ucp_pair _loop{{.self = true}};
    layout _column      = must(layout::create_strided(block, {{rows, stride}}));
    datatype _type      = must(datatype::create(_column));
    std::size_t _count  = GetParam();
    std::size_t _packed = _count * rows * block;

    // Where packed byte `at` is in memory.
    static std::size_t place(std::size_t at)
    {
        const std::size_t one = rows * block;
        return at / one * extent + at % one / block * stride + at % block;
    }
};

TEST_P(datatype_of, count_columns_sends_them_one_after_another)
{
    auto memory = random_bytes(_count * extent + 1);
    std::vector<unsigned char> received(_packed + 1, 0xee);
    ASSERT_EQ(_loop.transfer({memory.data(), _count, _type.get()}, contiguous(received.data(), _packed)), UCS_OK);
    for (std::size_t at = 0; at < _packed; ++at) {
        ASSERT_EQ(received[at], memory[place(at)]) << "packed byte " << at;
    }
    EXPECT_EQ(received[_packed], 0xee);
}

TEST_P(datatype_of, count_columns_receives_and_leaves_the_gaps)
{
    auto sent = random_bytes(_packed + 1);
    std::vector<unsigned char> memory(_count * extent + 1, 0xee), expected = memory;
    for (std::size_t at = 0; at < _packed; ++at) {
        expected[place(at)] = sent[at];
    }
    ASSERT_EQ(_loop.transfer(contiguous(sent.data(), _packed), {memory.data(), _count, _type.get()}), UCS_OK);
    EXPECT_EQ(memory, expected);
}

INSTANTIATE_TEST_SUITE_P(counts, datatype_of, testing::Values(0, 1, 2, 3, 100, 5000),
                         testing::PrintToStringParamName());

class layout_datatype : public ucx_test
{
};

TEST_F(layout_datatype, several_sources_take_an_array_of_base_addresses)
{
    ucp_pair loop({.self = true});
    const auto pair = must(layout::parse("interleaved(0:2@0,8,2;1:4@0,8,4)"));
    const auto type = must(datatype::create(pair));
    auto shorts = random_bytes(16), words = random_bytes(32);
    std::reverse(words.begin(), words.end());
    void* bases[] = {shorts.data(), words.data()};
    std::vector<unsigned char> received(48), expected;
    for (std::size_t i = 0; i < 8; ++i) {
        expected.insert(expected.end(), &shorts[2 * i], &shorts[2 * i] + 2);
        expected.insert(expected.end(), &words[4 * i], &words[4 * i] + 4);
    }
    ASSERT_EQ(loop.transfer({bases, 1, type.get()}, contiguous(received.data(), 48)), UCS_OK);
    EXPECT_EQ(received, expected);
}

// So many counts that there is no plan for all of them: the elements are also moved one by one.
TEST_F(layout_datatype, several_sources_take_a_count_too)
{
    constexpr std::size_t length = 12, extent = 10; // of one element: 3 times 2 bytes of one source and 3 times 2 bytes
    constexpr std::size_t max_count = 100;
    ucp_pair loop({.self = true});
    const auto pair = must(layout::parse("interleaved(0:2@0,3,4;1:2@0,3,4)"));
    ASSERT_EQ(pair.query(UCP_LAYOUT_ATTR_FIELD_EXTENT)->extent, std::ptrdiff_t{extent});
    const auto type = must(datatype::create(pair));
    auto first = random_bytes(max_count * extent), second = random_bytes(max_count * extent);
    std::ranges::reverse(second);
    void* bases[] = {first.data(), second.data()};
    for (std::size_t count = 0; count < max_count; ++count) {
        std::vector<unsigned char> expected;
        for (std::size_t element = 0; element < count; ++element) {
            for (std::size_t at = element * extent; at < element * extent + extent; at += 4) {
                expected.insert(expected.end(), &first[at], &first[at] + 2);
                expected.insert(expected.end(), &second[at], &second[at] + 2);
            }
        }
        ASSERT_EQ(expected.size(), count * length);
        std::vector<unsigned char> received(expected.size());
        ASSERT_EQ(loop.transfer({bases, count, type.get()}, contiguous(received.data(), received.size())), UCS_OK);
        ASSERT_EQ(received, expected) << count << " elements";

        std::vector<unsigned char> first_in(first.size(), 0xee), second_in(second.size(), 0xee);
        void* bases_in[] = {first_in.data(), second_in.data()};
        ASSERT_EQ(loop.transfer(contiguous(expected.data(), expected.size()), {bases_in, count, type.get()}), UCS_OK);
        for (std::size_t at = 0; at < first.size(); ++at) {
            const bool described = at < count * extent && at % extent % 4 < 2;
            ASSERT_EQ(first_in[at], described ? first[at] : 0xee) << count << " elements, byte " << at;
            ASSERT_EQ(second_in[at], described ? second[at] : 0xee) << count << " elements, byte " << at;
        }
    }
}

// UCP lets no start of a send fail: this is what is left, with the reason in the log.
std::uint64_t silent_datatype_failures()
{
    ucp_layout_failure_attr_t attr{};
    attr.field_mask = UCP_LAYOUT_FAILURE_ATTR_FIELD_SILENT;
    EXPECT_EQ(ucp_layout_failure_query(0, UCP_LAYOUT_FAILURE_DATATYPE, &attr), UCS_OK);
    return attr.silent;
}

TEST_F(layout_datatype, a_send_that_cannot_start_is_logged_counted_and_empty)
{
    const auto before = silent_datatype_failures();
    ucp_pair loop({.self = true});
    const auto type = must(datatype::create(must(layout::create_strided(8, {{2, 16}}))));
    std::vector<unsigned char> memory(64, 0xee);
    {
        logs().expect("buffer is NULL");
        EXPECT_EQ(loop.transfer({nullptr, 1, type.get()}, contiguous(memory.data(), 16)), UCS_OK);
    }
    {
        logs().expect("the count makes the message too long");
        EXPECT_EQ(loop.transfer({memory.data(), SIZE_MAX / 8, type.get()}, contiguous(memory.data(), 16)), UCS_OK);
    }
    EXPECT_EQ(silent_datatype_failures(), before + 2);
    EXPECT_EQ(std::ranges::count(memory, 0xee), 64);
}

TEST_F(layout_datatype, a_receive_that_cannot_start_ends_with_an_error)
{
    ucp_pair loop({.self = true});
    const auto type = must(datatype::create(must(layout::create_strided(8, {{2, 16}}))));
    std::vector<unsigned char> sent(16);
    logs().expect("buffer is NULL");
    EXPECT_EQ(loop.transfer(contiguous(sent.data(), 16), {nullptr, 1, type.get()}), UCS_ERR_MESSAGE_TRUNCATED);
}

TEST_F(layout_datatype, no_bytes_need_no_buffer)
{
    ucp_pair loop({.self = true});
    const auto type = must(datatype::create(must(layout::create_strided(8, {{2, 16}}))));
    EXPECT_EQ(loop.transfer({nullptr, 0, type.get()}, {nullptr, 0, type.get()}), UCS_OK);
}

TEST_F(layout_datatype, longer_messages_than_the_layout_are_truncated_errors)
{
    ucp_pair loop({.self = true});
    const auto type = must(datatype::create(must(layout::create_strided(8, {{2, 16}}))));
    std::vector<unsigned char> memory(64, 0xee), sent(17);
    EXPECT_EQ(loop.transfer(contiguous(sent.data(), 17), {memory.data(), 1, type.get()}), UCS_ERR_MESSAGE_TRUNCATED);
    EXPECT_EQ(std::count(memory.begin() + 24, memory.end(), 0xee), 40);
}

TEST_F(layout_datatype, many_different_counts_stay_correct)
{
    ucp_pair loop({.self = true});
    const auto type = must(datatype::create(must(layout::create_strided(4, {{2, 8}}))));
    auto memory     = random_bytes(12 * 200);
    for (std::size_t count = 0; count < 200; ++count) {
        std::vector<unsigned char> received(count * 8);
        ASSERT_EQ(loop.transfer({memory.data(), count, type.get()}, contiguous(received.data(), received.size())),
                  UCS_OK);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(std::memcmp(&received[8 * i], &memory[12 * i], 4), 0) << count << " elements, element " << i;
            ASSERT_EQ(std::memcmp(&received[8 * i + 4], &memory[12 * i + 8], 4), 0)
                << count << " elements, element " << i;
        }
    }
}

TEST_F(layout_datatype, the_layout_may_be_destroyed_first)
{
    ucp_pair loop({.self = true});
    const auto type = [] { return must(datatype::create(must(layout::create_strided(8, {{2, 16}})))); }();
    auto memory     = random_bytes(24);
    std::vector<unsigned char> received(16);
    ASSERT_EQ(loop.transfer({memory.data(), 1, type.get()}, contiguous(received.data(), 16)), UCS_OK);
    EXPECT_EQ(std::memcmp(received.data() + 8, memory.data() + 16, 8), 0);
}

// A panel: its columns share lines of the cache, and pieces of a transport are shorter than the panel.
class datatype_of_columns : public ucx_test, public testing::WithParamInterface<const char*>
{
protected:
    static constexpr std::size_t rows = 700, columns = 24, pitch = 4096;

    static std::size_t place(std::size_t at) { return at / 8 % rows * pitch + at / 8 / rows * 8 + at % 8; }

    ucp_pair _pair{{.config = {{"TLS", GetParam()}}}};
    layout _panel       = must(layout::create_strided(8, {{columns, 8}, {rows, pitch}}));
    datatype _type      = must(datatype::create(_panel));
    std::size_t _packed = rows * columns * 8;
};

TEST_P(datatype_of_columns, sends_are_the_columns_one_after_another)
{
    auto memory = random_bytes(rows * pitch);
    std::vector<unsigned char> received(_packed), expected(_packed);
    for (std::size_t at = 0; at < _packed; ++at) {
        expected[at] = memory[place(at)];
    }
    ASSERT_EQ(_pair.transfer({memory.data(), 1, _type.get()}, contiguous(received.data(), _packed)), UCS_OK);
    EXPECT_EQ(received, expected);
}

TEST_P(datatype_of_columns, receives_write_all_that_came_and_nothing_else)
{
    for (const std::size_t length : {_packed, _packed - 8192, std::size_t{8264}, std::size_t{12}}) {
        auto sent = random_bytes(length);
        std::vector<unsigned char> memory(rows * pitch, 0xee), expected = memory;
        for (std::size_t at = 0; at < length; ++at) {
            expected[place(at)] = sent[at];
        }
        ASSERT_EQ(_pair.transfer(contiguous(sent.data(), length), {memory.data(), 1, _type.get()}), UCS_OK);
        EXPECT_EQ(memory, expected) << length;
    }
}

INSTANTIATE_TEST_SUITE_P(transports, datatype_of_columns, testing::Values("posix", "posix,cma", "tcp"),
                         [](const auto& each) {
                             std::string name = each.param;
                             std::ranges::replace(name, ',', '_');
                             return name;
                         });

// As MPI lets programs do.
TEST_F(layout_datatype, operations_that_have_started_may_outlive_it)
{
    ucp_pair pair({.config = {{"TLS", "posix,self"}}});
    const std::size_t rows = 500000; // more than the queue of the transport holds
    auto memory            = random_bytes(rows * 16);
    std::vector<unsigned char> received(rows * 16, 0xee);
    ucp_request_param_t param{};
    param.op_attr_mask         = UCP_OP_ATTR_FIELD_DATATYPE;
    ucs_status_ptr_t receiving = nullptr, sending = nullptr;
    {
        const auto type = must(datatype::create(must(layout::create_strided(8, {{rows, 16}}))));
        param.datatype  = type.get();
        receiving       = ucp_tag_recv_nbx(pair.worker(1), received.data(), 1, 7, ~ucp_tag_t{0}, &param);
        ASSERT_TRUE(UCS_PTR_IS_PTR(receiving));
        sending = ucp_tag_send_nbx(pair.ep(0), memory.data(), 1, 7, &param);
        ASSERT_TRUE(UCS_PTR_IS_PTR(sending));
    }
    EXPECT_EQ(pair.finish(sending), UCS_OK);
    EXPECT_EQ(pair.finish(receiving), UCS_OK);
    for (std::size_t row = 0; row < rows; ++row) {
        ASSERT_EQ(std::memcmp(&received[16 * row], &memory[16 * row], 8), 0) << row;
        ASSERT_EQ(received[16 * row + 8], 0xee) << row;
    }
}

TEST_F(layout_datatype, offsets_may_be_whole_addresses)
{
    ucp_pair loop({.self = true});
    const std::size_t length = 1 << 16;
    auto* const low = static_cast<unsigned char*>(mmap(reinterpret_cast<void*>(std::uintptr_t{1} << 32), length,
                                                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(static_cast<void*>(low), MAP_FAILED);
    const auto at = reinterpret_cast<std::uintptr_t>(low);
    if (at >= std::uintptr_t{1} << 45) {
        munmap(low, length);
        GTEST_SKIP() << "the system gave an address beyond the limit of offsets";
    }
    std::ranges::fill(std::span(low, length), static_cast<unsigned char>(7));
    const std::string text = "iov(100@" + std::to_string(at) + ")";
    const auto type        = must(datatype::create(must(layout::parse(text.c_str()))));
    std::vector<unsigned char> received(100);
    EXPECT_EQ(loop.transfer({nullptr, 1, type.get()}, contiguous(received.data(), 100)), UCS_OK);
    EXPECT_EQ(std::ranges::count(received, 7), 100);
    munmap(low, length);
}

// What a destructor of a key does, after those of the thread's own objects.
struct late_pack {
    ucp_layout_datatype_attr_t attr{};
    std::string packed      = std::string(8, ' ');
    bool is_in_freed_memory = false;

    static void run(void* self)
    {
        auto& late = *static_cast<late_pack*>(self);
        std::vector<std::unique_ptr<char[]>> blocks; // if something was freed, one of these is at its address
        for (std::size_t size = 48; size <= 256; size += 16) {
            for (int i = 0; i < 40; ++i) {
                blocks.push_back(std::make_unique<char[]>(size));
            }
        }
        void* const state = late.attr.operations.start_pack(late.attr.context, "a.b.c.d.e.f.g.h.", 1);
        late.is_in_freed_memory =
            std::ranges::any_of(blocks, [&](const auto& each) { return each.get() == static_cast<char*>(state); });
        late.attr.operations.pack(state, 0, late.packed.data(), late.packed.size());
        late.attr.operations.finish(state);
    }
};

TEST_F(layout_datatype, operations_may_begin_when_the_thread_ends)
{
    const auto type = must(datatype::create(must(layout::create_strided(1, {{8, 2}}))));
    late_pack late;
    late.attr.field_mask = UCP_LAYOUT_DATATYPE_ATTR_FIELD_OPERATIONS | UCP_LAYOUT_DATATYPE_ATTR_FIELD_CONTEXT;
    ASSERT_EQ(ucp_layout_datatype_query(type.get(), &late.attr), UCS_OK);
    pthread_key_t key{};
    ASSERT_EQ(pthread_key_create(&key, &late_pack::run), 0);
    std::thread([&] {
        pthread_setspecific(key, &late);
        for (int i = 0; i < 2; ++i) {
            late.attr.operations.finish(late.attr.operations.start_pack(late.attr.context, "a.b.c.d.e.f.g.h.", 1));
        }
    }).join();
    pthread_key_delete(key);
    EXPECT_EQ(late.packed, "abcdefgh");
    EXPECT_FALSE(late.is_in_freed_memory);
}

TEST_F(layout_datatype, destroy_of_a_foreign_datatype_is_refused)
{
    logs().expect("was not made from a layout");
    ucp_layout_datatype_destroy(ucp_dt_make_contig(8));
}

TEST_F(layout_datatype, destroy_of_none_does_nothing)
{
    ucp_layout_datatype_destroy(0);
}

} // namespace
