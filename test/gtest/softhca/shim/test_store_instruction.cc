#include "softhca/shim/doorbell/store_instruction.h"
#include "support/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace ucxl::softhca
{
namespace
{

using bytes = std::vector<std::uint8_t>;

// Every register has another value.
struct register_file {
    std::array<std::uint64_t, 32> general;
    std::array<std::uint64_t, 64> vector;

    register_file()
    {
        for (std::size_t i = 0; i < general.size(); ++i) {
            general[i] = 0x1112131415161718 + i * 0x0101010101010101;
        }
        for (std::size_t i = 0; i < vector.size(); ++i) {
            vector[i] = 0x8182838485868788 + i * 0x0101010101010101;
        }
    }

    stored_registers view() const { return {.general = general, .vector = std::span(vector).first(32)}; }
    stored_registers whole() const { return {.general = general, .vector = vector}; }
};

const register_file registers;

std::uint64_t general(unsigned number)
{
    return registers.general[number];
}

std::uint64_t low(unsigned number)
{
    return registers.vector[2 * number];
}

std::uint64_t high(unsigned number)
{
    return registers.vector[2 * number + 1];
}

#ifdef __x86_64__

constexpr unsigned rax = 0, rdx = 2, rsi = 6, r9 = 9, r10 = 10;

struct expected_store {
    const char* text; // as objdump prints it
    bytes code;
    unsigned width;
    std::uint64_t value; // the first 8 bytes
};

// What follows an instruction does not matter.
bytes padded(bytes code)
{
    code.resize(15, 0xcc);
    return code;
}

// The bytes are those that GNU as makes of the text.
std::vector<expected_store> known_stores()
{
    const auto word = [](std::uint64_t value) { return value & 0xffffffff; };
    return {
        {"mov %rax,(%rdx)", {0x48, 0x89, 0x02}, 8, general(rax)},
        {"mov %rdx,0x800(%rax)", {0x48, 0x89, 0x90, 0x00, 0x08, 0x00, 0x00}, 8, general(rdx)},
        {"mov %r9,(%r10,%rax,8)", {0x4d, 0x89, 0x0c, 0xc2}, 8, general(r9)},
        {"mov %rsi,0x8(%rsp)", {0x48, 0x89, 0x74, 0x24, 0x08}, 8, general(rsi)},
        {"mov %rax,0x1234(%rip)", {0x48, 0x89, 0x05, 0x34, 0x12, 0x00, 0x00}, 8, general(rax)},
        {"mov %rax,0x1000", {0x48, 0x89, 0x04, 0x25, 0x00, 0x10, 0x00, 0x00}, 8, general(rax)},
        {"mov %edx,0x20(%rcx)", {0x89, 0x51, 0x20}, 4, word(general(rdx))},
        {"mov %dx,(%rcx)", {0x66, 0x89, 0x11}, 2, general(rdx) & 0xffff},
        {"mov %dl,(%rcx)", {0x88, 0x11}, 1, general(rdx) & 0xff},
        {"mov %dh,(%rcx)", {0x88, 0x31}, 1, general(rdx) >> 8 & 0xff},
        {"mov %sil,(%rcx)", {0x40, 0x88, 0x31}, 1, general(rsi) & 0xff},
        {"mov %rax,%gs:0x10(%rdx)", {0x65, 0x48, 0x89, 0x42, 0x10}, 8, general(rax)},
        {"mov %eax,(%edx)", {0x67, 0x89, 0x02}, 4, word(general(rax))},
        {"movabs %rax,0x1122334455667788",
         {0x48, 0xa3, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11},
         8,
         general(rax)},
        {"movq $-2,(%rax)", {0x48, 0xc7, 0x00, 0xfe, 0xff, 0xff, 0xff}, 8, ~std::uint64_t{1}},
        {"movl $0x11223344,0x4(%rax)", {0xc7, 0x40, 0x04, 0x44, 0x33, 0x22, 0x11}, 4, 0x11223344},
        {"movw $0x1122,(%rax)", {0x66, 0xc7, 0x00, 0x22, 0x11}, 2, 0x1122},
        {"movb $0x11,(%rax)", {0xc6, 0x00, 0x11}, 1, 0x11},
        {"movnti %rax,(%rdx)", {0x48, 0x0f, 0xc3, 0x02}, 8, general(rax)},
        {"movnti %eax,(%rdx)", {0x0f, 0xc3, 0x02}, 4, word(general(rax))},
        {"movbe %rax,(%rdx)", {0x48, 0x0f, 0x38, 0xf1, 0x02}, 8, __builtin_bswap64(general(rax))},
        {"movbe %eax,(%rdx)", {0x0f, 0x38, 0xf1, 0x02}, 4, __builtin_bswap32(static_cast<unsigned>(general(rax)))},
        {"movdiri %rax,(%rdx)", {0x48, 0x0f, 0x38, 0xf9, 0x02}, 8, general(rax)},
        {"movups %xmm0,(%rax)", {0x0f, 0x11, 0x00}, 16, low(0)},
        {"movaps %xmm9,0x10(%rax)", {0x44, 0x0f, 0x29, 0x48, 0x10}, 16, low(9)},
        {"movupd %xmm1,(%rax)", {0x66, 0x0f, 0x11, 0x08}, 16, low(1)},
        {"movss %xmm1,(%rax)", {0xf3, 0x0f, 0x11, 0x08}, 4, word(low(1))},
        {"movsd %xmm1,(%rax)", {0xf2, 0x0f, 0x11, 0x08}, 8, low(1)},
        {"movlps %xmm1,(%rax)", {0x0f, 0x13, 0x08}, 8, low(1)},
        {"movhps %xmm1,(%rax)", {0x0f, 0x17, 0x08}, 8, high(1)},
        {"movntps %xmm1,(%rax)", {0x0f, 0x2b, 0x08}, 16, low(1)},
        {"movd %xmm1,(%rax)", {0x66, 0x0f, 0x7e, 0x08}, 4, word(low(1))},
        {"movq %xmm1,(%rax) with REX.W", {0x66, 0x48, 0x0f, 0x7e, 0x08}, 8, low(1)},
        {"movq %xmm1,(%rax)", {0x66, 0x0f, 0xd6, 0x08}, 8, low(1)},
        {"movdqa %xmm15,(%rax)", {0x66, 0x44, 0x0f, 0x7f, 0x38}, 16, low(15)},
        {"movdqu %xmm1,(%rax)", {0xf3, 0x0f, 0x7f, 0x08}, 16, low(1)},
        {"movntdq %xmm1,(%rax)", {0x66, 0x0f, 0xe7, 0x08}, 16, low(1)},
        {"vmovdqu %xmm1,(%rax)", {0xc5, 0xfa, 0x7f, 0x08}, 16, low(1)},
        {"vmovdqu %ymm1,(%rax)", {0xc5, 0xfe, 0x7f, 0x08}, 32, low(1)},
        {"vmovdqa %ymm9,(%rax)", {0xc5, 0x7d, 0x7f, 0x08}, 32, low(9)},
        {"vmovups %ymm1,(%r10)", {0xc4, 0xc1, 0x7c, 0x11, 0x0a}, 32, low(1)},
        {"vmovntdq %ymm1,(%rax)", {0xc5, 0xfd, 0xe7, 0x08}, 32, low(1)},
        {"vmovq %xmm1,(%rax)", {0xc5, 0xf9, 0xd6, 0x08}, 8, low(1)},
        {"vmovsd %xmm1,(%rax)", {0xc5, 0xfb, 0x11, 0x08}, 8, low(1)},
        {"vmovdqu64 %zmm1,(%rax)", {0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x08}, 64, low(1)},
        {"vmovntdq %zmm1,0x40(%rax)", {0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x48, 0x01}, 64, low(1)},
        {"vmovhpd %xmm1,(%rax)", {0xc5, 0xf9, 0x17, 0x08}, 8, high(1)},
        {"vmovdqu8 %ymm1,(%rax)", {0x62, 0xf1, 0x7f, 0x28, 0x7f, 0x08}, 32, low(1)},
        {"vmovw %xmm1,(%rax)", {0x62, 0xf5, 0x7d, 0x08, 0x7e, 0x08}, 2, low(1) & 0xffff},
    };
}

TEST(store_x86_64, known_stores_give_length_width_and_value)
{
    for (const expected_store& known : known_stores()) {
        SCOPED_TRACE(known.text);
        const auto store = decode_store_x86_64(padded(known.code));
        ASSERT_TRUE(store.has_value());
        EXPECT_EQ(store->length, known.code.size());
        EXPECT_EQ(store->width, known.width);
        EXPECT_EQ(stored_value(*store, registers.view()), known.value);
    }
}

TEST(store_x86_64, an_instruction_that_is_cut_off_is_none)
{
    for (const expected_store& known : known_stores()) {
        for (std::size_t length = 0; length < known.code.size(); ++length) {
            EXPECT_FALSE(decode_store_x86_64(std::span(known.code).first(length))) << known.text << ", " << length;
        }
    }
}

TEST(store_x86_64, other_instructions_are_none)
{
    const std::pair<const char*, bytes> others[] = {
        {"mov (%rdx),%rax", {0x48, 0x8b, 0x02}},
        {"mov %rax,%rdx", {0x48, 0x89, 0xc2}},
        {"add %rax,(%rdx)", {0x48, 0x01, 0x02}},
        {"xchg %rax,(%rdx)", {0x48, 0x87, 0x02}},
        {"lock mov (not an instruction)", {0xf0, 0x48, 0x89, 0x02}},
        {"rep stos %rax,(%rdi)", {0xf3, 0x48, 0xab}},
        {"rep movsb", {0xf3, 0xa4}},
        {"movq (%rax),%xmm1", {0xf3, 0x0f, 0x7e, 0x08}},
        {"movq %mm1,(%rax)", {0x0f, 0x7f, 0x08}},
        {"crc32 (%rdx),%eax", {0xf2, 0x0f, 0x38, 0xf1, 0x02}},
        {"movbe (%rdx),%eax", {0x0f, 0x38, 0xf0, 0x02}},
        {"vmovdqu64 %zmm17,(%rax)", {0x62, 0xe1, 0xfe, 0x48, 0x7f, 0x08}},
        {"vmovdqu64 %zmm1,(%rax){%k1}", {0x62, 0xf1, 0xfe, 0x49, 0x7f, 0x08}},
        {"vmaskmovps %ymm1,%ymm2,(%rax)", {0xc4, 0xe2, 0x6d, 0x2e, 0x08}},
        {"movdir64b (%rax),%rdx", {0x66, 0x0f, 0x38, 0xf8, 0x10}},
        {"vpmovqd %zmm1,(%rax)", {0x62, 0xf2, 0x7e, 0x48, 0x35, 0x08}},
        {"vextracti128 $1,%ymm1,(%rax)", {0xc4, 0xe3, 0x7d, 0x39, 0x08, 0x01}},
        {"mov %ds,(%rax)", {0x8c, 0x18}},
    };
    for (const auto& [text, code] : others) {
        EXPECT_FALSE(decode_store_x86_64(padded(code))) << text;
    }
}

TEST(store_x86_64, any_bytes_are_decoded_within_bounds)
{
    ucxl::test::random random(ucxl::test::run_seed());
    for (int i = 0; i < 1'000'000; ++i) {
        bytes code(random.below(16));
        for (std::uint8_t& byte : code) {
            byte = static_cast<std::uint8_t>(random.next());
        }
        const auto store = decode_store_x86_64(code);
        if (store) {
            ASSERT_GT(store->length, 1U);
            ASSERT_LE(store->length, code.size());
            ASSERT_TRUE(stored_value(*store, registers.view()).has_value());
        }
    }
}

TEST(store_x86_64, says_where_to_if_that_is_a_register_and_a_constant)
{
    const auto store = decode_store_x86_64(padded({0x41, 0x0f, 0x11, 0x4a, 0xf0})); // movups %xmm1,-0x10(%r10)
    ASSERT_TRUE(store.has_value());
    EXPECT_EQ(store->base, r10);
    EXPECT_EQ(store->displacement, -16);
    // vmovdqu64 %zmm1,0x40(%rax), the constant in units of the vector
    const auto scaled = decode_store_x86_64(padded({0x62, 0xf1, 0xfe, 0x48, 0x7f, 0x48, 0x01}));
    ASSERT_TRUE(scaled.has_value());
    EXPECT_EQ(scaled->base, rax);
    EXPECT_EQ(scaled->displacement, 64);

    const std::pair<const char*, bytes> others[] = {
        {"movups %xmm1,(%rax,%rdx,8)", {0x0f, 0x11, 0x0c, 0xd0}},
        {"movups %xmm1,0x10(%rip)", {0x0f, 0x11, 0x0d, 0x10, 0x00, 0x00, 0x00}},
        {"movups %xmm1,0x1000", {0x0f, 0x11, 0x0c, 0x25, 0x00, 0x10, 0x00, 0x00}},
        {"movups %xmm1,(%eax)", {0x67, 0x0f, 0x11, 0x08}},
        {"movups %xmm1,%gs:(%rax)", {0x65, 0x0f, 0x11, 0x08}},
    };
    for (const auto& [text, code] : others) {
        const auto elsewhere = decode_store_x86_64(padded(code));
        ASSERT_TRUE(elsewhere.has_value()) << text;
        EXPECT_EQ(elsewhere->base, no_register) << text;
    }
}

TEST(load_x86_64, only_loads_of_whole_legacy_vectors_are_known)
{
    const auto load = decode_load_x86_64(padded({0xf3, 0x45, 0x0f, 0x6f, 0x4a, 0x20})); // movdqu 0x20(%r10),%xmm9
    ASSERT_TRUE(load.has_value());
    EXPECT_EQ(load->length, 6);
    EXPECT_EQ(load->number, 9);
    EXPECT_EQ(load->base, r10);
    EXPECT_EQ(load->displacement, 32);

    const std::pair<const char*, bytes> others[] = {
        {"movups %xmm1,(%rax)", {0x0f, 0x11, 0x08}},
        {"movaps %xmm1,%xmm0", {0x0f, 0x28, 0xc1}},
        {"movups (%rax,%rdx,8),%xmm1", {0x0f, 0x10, 0x0c, 0xd0}},
        {"movsd (%rax),%xmm1", {0xf2, 0x0f, 0x10, 0x08}},
        {"movddup (%rax),%xmm1", {0xf2, 0x0f, 0x12, 0x08}},
        {"movshdup (%rax),%xmm1", {0xf3, 0x0f, 0x16, 0x08}},
        {"movsldup (%rax),%xmm1", {0xf3, 0x0f, 0x12, 0x08}},
        {"vmovdqu (%rax),%xmm1", {0xc5, 0xfa, 0x6f, 0x08}},
        {"vmovdqu (%rax),%ymm1", {0xc5, 0xfe, 0x6f, 0x08}},
        {"mov (%rax),%rdx", {0x48, 0x8b, 0x10}},
    };
    for (const auto& [text, code] : others) {
        EXPECT_FALSE(decode_load_x86_64(padded(code))) << text;
    }
}

#endif

struct expected_arm_store {
    const char* text;
    std::uint32_t code;
    unsigned width;
    std::uint64_t value;
    std::uint8_t written_back;
    int moved_by;
};

TEST(store_aarch64, known_stores_give_width_value_and_write_back)
{
    const std::uint64_t none         = no_register;
    const auto word                  = [](std::uint64_t value) { return value & 0xffffffff; };
    const expected_arm_store known[] = {
        {"str x0, [x1]", 0xf9000020, 8, general(0), no_register, 0},
        {"str x2, [x1, #2048]", 0xf9040022, 8, general(2), no_register, 0},
        {"str w3, [x1, #4]", 0xb9000423, 4, word(general(3)), no_register, 0},
        {"strh w3, [x1]", 0x79000023, 2, general(3) & 0xffff, no_register, 0},
        {"strb w3, [x1]", 0x39000023, 1, general(3) & 0xff, no_register, 0},
        {"str xzr, [x1]", 0xf900003f, 8, 0, no_register, 0},
        {"stur x0, [x1, #-8]", 0xf81f8020, 8, general(0), no_register, 0},
        {"str x0, [x1], #8", 0xf8008420, 8, general(0), 1, 8},
        {"str x0, [x1, #-16]!", 0xf81f0c20, 8, general(0), 1, -16},
        {"str x0, [x1, x2]", 0xf8226820, 8, general(0), no_register, 0},
        {"stp x0, x2, [x1]", 0xa9000820, 16, general(0), no_register, 0},
        {"stp x0, x2, [x1], #16", 0xa8810820, 16, general(0), 1, 16},
        {"stp w0, w2, [x1]", 0x29000820, 8, word(general(0)) | general(2) << 32, no_register, 0},
        {"stp w0, wzr, [x1]", 0x29007c20, 8, word(general(0)), no_register, 0},
        {"stlr x0, [x1]", 0xc89ffc20, 8, general(0), no_register, 0},
        {"str q5, [x1]", 0x3d800025, 16, low(5), no_register, 0},
        {"str d5, [x1]", 0xfd000025, 8, low(5), no_register, 0},
        {"str s5, [x1]", 0xbd000025, 4, word(low(5)), no_register, 0},
        {"stp q30, q31, [x1, #-32]!", 0xadbf7c3e, 32, low(30), 1, -32},
        {"stnp q0, q1, [x1]", 0xac000420, 32, low(0), no_register, 0},
    };
    EXPECT_EQ(none, 0xff);
    for (const expected_arm_store& each : known) {
        SCOPED_TRACE(each.text);
        const auto store = decode_store_aarch64(each.code);
        ASSERT_TRUE(store.has_value());
        EXPECT_EQ(store->length, 4);
        EXPECT_EQ(store->width, each.width);
        EXPECT_EQ(stored_value(*store, registers.whole()), each.value);
        EXPECT_EQ(store->written_back, each.written_back);
        EXPECT_EQ(store->moved_by, each.moved_by);
    }
}

TEST(store_aarch64, other_instructions_are_none)
{
    const std::pair<const char*, std::uint32_t> others[] = {
        {"ldr x0, [x1]", 0xf9400020},
        {"ldp x0, x2, [x1]", 0xa9400820},
        {"ldadd x0, x2, [x1]", 0xf8200022},
        {"prfm pldl1keep, [x1]", 0xf9800020},
        {"nop", 0xd503201f},
        {"ldr q5, [x1]", 0x3dc00025},
        {"stxr w0, x1, [x2]", 0xc8007c41},
    };
    for (const auto& [text, code] : others) {
        EXPECT_FALSE(decode_store_aarch64(code)) << text;
    }
}

#ifdef __aarch64__

// What the processor does with an instruction that stores from x2, x3, v5 or v6 to where x1 points.
struct executed_store {
    std::uint32_t code = 0;
    std::int64_t moved = 0; // x1
    std::array<std::uint64_t, 16> memory;
};

constexpr std::uint64_t untouched = 0xeeeeeeeeeeeeeeee;
constexpr std::size_t middle      = 8; // word of the memory where x1 points

#define EXECUTED(text)                                                                                                 \
    std::pair<const char*, executed_store (*)()>                                                                       \
    {                                                                                                                  \
        text, [] {                                                                                                     \
            executed_store done;                                                                                       \
            done.memory.fill(untouched);                                                                               \
            const std::uint32_t* at;                                                                                   \
            std::uint64_t* const begin                   = &done.memory[middle];                                       \
            const std::uint64_t words[]                  = {general(2), general(3), low(5), high(5), low(6), high(6)}; \
            register std::uint64_t* to asm("x1")         = begin; /* nothing is called from here on */                 \
            register std::uint64_t one asm("x2")         = words[0];                                                   \
            register std::uint64_t two asm("x3")         = words[1];                                                   \
            register const std::uint64_t* from asm("x4") = &words[2];                                                  \
            asm volatile("ldp q5, q6, [x4]\n\tadr %[at], 1f\n1:\t" text                                                \
                         : [at] "=&r"(at), "+r"(to)                                                                    \
                         : "r"(one), "r"(two), "r"(from)                                                               \
                         : "v5", "v6", "memory");                                                                      \
            done.code  = *at;                                                                                          \
            done.moved = reinterpret_cast<std::byte*>(to) - reinterpret_cast<std::byte*>(begin);                       \
            return done;                                                                                               \
        }                                                                                                              \
    }

// All of them store at x1 and move it later, if they do.
TEST(store_aarch64, what_is_decoded_is_what_the_processor_does)
{
    const std::pair<const char*, executed_store (*)()> all[] = {
        EXECUTED("str x2, [x1]"),           EXECUTED("str w3, [x1]"),           EXECUTED("strh w2, [x1]"),
        EXECUTED("strb w3, [x1]"),          EXECUTED("str xzr, [x1]"),          EXECUTED("stur x2, [x1]"),
        EXECUTED("str x2, [x1], #8"),       EXECUTED("str x3, [x1], #-256"),    EXECUTED("str x2, [x1, xzr]"),
        EXECUTED("stp x2, x3, [x1]"),       EXECUTED("stp x3, x2, [x1], #-16"), EXECUTED("stp w2, w3, [x1]"),
        EXECUTED("stp xzr, x3, [x1]"),      EXECUTED("stnp x2, x3, [x1]"),      EXECUTED("stlr x2, [x1]"),
        EXECUTED("stlr w3, [x1]"),          EXECUTED("stlrh w2, [x1]"),         EXECUTED("str q5, [x1]"),
        EXECUTED("str d6, [x1]"),           EXECUTED("str s5, [x1]"),           EXECUTED("str h6, [x1]"),
        EXECUTED("str b5, [x1]"),           EXECUTED("stp q5, q6, [x1], #32"),  EXECUTED("stp d5, d6, [x1]"),
        EXECUTED("stp s6, s5, [x1], #-64"), EXECUTED("stnp q6, q5, [x1]"),      EXECUTED("str q6, [x1], #-16"),
    };
    for (const auto& [text, execute] : all) {
        SCOPED_TRACE(text);
        const executed_store done = execute();
        const auto store          = decode_store_aarch64(done.code);
        ASSERT_TRUE(store.has_value());
        const auto value = stored_value(*store, registers.whole());
        ASSERT_TRUE(value.has_value());
        const std::uint64_t kept = store->width < 8 ? ~std::uint64_t{0} << 8 * store->width : 0;
        EXPECT_EQ(*value | (untouched & kept), done.memory[middle]);
        const auto is_untouched  = [](std::uint64_t word) { return word == untouched; };
        const std::size_t behind = middle + (store->width + 7U) / 8;
        EXPECT_TRUE(std::all_of(done.memory.begin(), done.memory.begin() + middle, is_untouched));
        EXPECT_TRUE(std::none_of(done.memory.begin() + middle, done.memory.begin() + behind, is_untouched));
        EXPECT_TRUE(std::all_of(done.memory.begin() + behind, done.memory.end(), is_untouched));
        EXPECT_EQ(store->moved_by, done.moved);
        EXPECT_EQ(store->written_back, done.moved == 0 ? no_register : 1);
    }
}

#endif

} // namespace
} // namespace ucxl::softhca
