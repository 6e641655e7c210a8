#include "interrupted_thread.h"

#include "guarded_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ucontext.h>

namespace ucxl::softhca
{
namespace
{

ucontext_t& state_of(void* context)
{
    return *static_cast<ucontext_t*>(context);
}

constexpr std::size_t general_registers = 32;
constexpr std::size_t vector_words      = 64;

struct register_values {
    std::array<std::uint64_t, general_registers> general{};
    std::array<std::uint64_t, vector_words> vector{};
    std::size_t vectors = 0;

    stored_registers view() const { return {.general = general, .vector = std::span(vector).first(vectors)}; }
};

} // namespace

#if defined(__x86_64__)

namespace
{

constexpr greg_t write_fault         = 2;     // of a page fault's error code
constexpr greg_t single_step_flag    = 0x100; // TF
constexpr std::size_t longest        = 15;
constexpr std::uintptr_t code_page   = 4096;
constexpr std::array register_order  = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

register_values registers_of(const ucontext_t& state)
{
    register_values found;
    for (std::size_t i = 0; i < register_order.size(); ++i) {
        found.general[i] = static_cast<std::uint64_t>(state.uc_mcontext.gregs[register_order[i]]);
    }
    if (state.uc_mcontext.fpregs != nullptr) {
        found.vectors = 32;
        std::memcpy(found.vector.data(), state.uc_mcontext.fpregs->_xmm, found.vectors * sizeof(std::uint64_t));
    }
    return found;
}

} // namespace

bool interrupted_thread::was_writing() const
{
    return (state_of(_context).uc_mcontext.gregs[REG_ERR] & write_fault) != 0;
}

std::optional<store_instruction> interrupted_thread::store() const
{
    const auto at = static_cast<std::uintptr_t>(state_of(_context).uc_mcontext.gregs[REG_RIP]);
    std::array<std::uint8_t, longest> code;
    std::size_t length = code.size();
    if (guarded_copy(code.data(), reinterpret_cast<const void*>(at), length) != copy_status::ok) {
        // The last instruction of the last page of code.
        length = std::min<std::size_t>(length, code_page - at % code_page);
        if (guarded_copy(code.data(), reinterpret_cast<const void*>(at), length) != copy_status::ok) {
            return std::nullopt;
        }
    }
    return decode_store_x86_64(std::span(code).first(length));
}

std::optional<std::uint64_t> interrupted_thread::value(const store_instruction& store) const
{
    const register_values registers = registers_of(state_of(_context));
    return stored_value(store, registers.view());
}

void interrupted_thread::skip(const store_instruction& store)
{
    state_of(_context).uc_mcontext.gregs[REG_RIP] += store.length;
}

bool interrupted_thread::begin_step()
{
    state_of(_context).uc_mcontext.gregs[REG_EFL] |= single_step_flag;
    sigdelset(&state_of(_context).uc_sigmask, SIGTRAP);
    return true;
}

void interrupted_thread::end_step()
{
    state_of(_context).uc_mcontext.gregs[REG_EFL] &= ~single_step_flag;
}

#elif defined(__aarch64__)

namespace
{

constexpr std::uint64_t write_not_read = 1U << 6; // WnR of the syndrome register

// The kernel puts records of 8 and more bytes behind the registers, each with a magic number and its size.
const _aarch64_ctx* find_record(const ucontext_t& state, std::uint32_t magic)
{
    const auto* const first = reinterpret_cast<const unsigned char*>(state.uc_mcontext.__reserved);
    for (std::size_t at = 0; at + sizeof(_aarch64_ctx) <= sizeof(state.uc_mcontext.__reserved);) {
        const auto* const record = reinterpret_cast<const _aarch64_ctx*>(first + at);
        if (record->magic == magic) {
            return record;
        }
        if (record->magic == 0 || record->size == 0) {
            break;
        }
        at += record->size;
    }
    return nullptr;
}

register_values registers_of(const ucontext_t& state)
{
    register_values found;
    std::copy_n(std::begin(state.uc_mcontext.regs), 31, found.general.begin());
    if (const auto* const record = find_record(state, FPSIMD_MAGIC)) {
        found.vectors = vector_words;
        std::memcpy(found.vector.data(), reinterpret_cast<const fpsimd_context*>(record)->vregs, sizeof(found.vector));
    }
    return found;
}

} // namespace

bool interrupted_thread::was_writing() const
{
    const auto* const record = find_record(state_of(_context), ESR_MAGIC);
    return record == nullptr || (reinterpret_cast<const esr_context*>(record)->esr & write_not_read) != 0;
}

std::optional<store_instruction> interrupted_thread::store() const
{
    std::uint32_t code = 0;
    const auto* const at = reinterpret_cast<const void*>(state_of(_context).uc_mcontext.pc);
    if (guarded_copy(&code, at, sizeof(code)) != copy_status::ok) {
        return std::nullopt;
    }
    return decode_store_aarch64(code);
}

std::optional<std::uint64_t> interrupted_thread::value(const store_instruction& store) const
{
    const register_values registers = registers_of(state_of(_context));
    return stored_value(store, registers.view());
}

void interrupted_thread::skip(const store_instruction& store)
{
    mcontext_t& machine = state_of(_context).uc_mcontext;
    if (store.written_back != no_register) {
        auto& base = store.written_back == 31 ? machine.sp : machine.regs[store.written_back];
        base += static_cast<std::uint64_t>(std::int64_t{store.moved_by});
    }
    machine.pc += store.length;
}

bool interrupted_thread::begin_step()
{
    return false;
}

void interrupted_thread::end_step() {}

#else
#error "softhca knows the doorbell stores of x86-64 and aarch64 only"
#endif

} // namespace ucxl::softhca
