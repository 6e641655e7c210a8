#include "interrupted_thread.h"

#include "softhca/shim/system/guarded_copy.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ucontext.h>
#include <utility>

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

constexpr greg_t write_fault        = 2;     // in the error code of a page fault
constexpr greg_t single_step_flag   = 0x100; // TF
constexpr std::size_t longest       = 15;
constexpr std::uintptr_t code_page  = 4096;
constexpr std::array register_order = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
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

struct code_bytes {
    std::array<std::uint8_t, longest> bytes{};
    std::size_t length = 0;

    std::span<const std::uint8_t> view() const { return std::span(bytes).first(length); }
};

// The code that the thread executes next.
code_bytes code_at(const ucontext_t& state)
{
    const auto at          = static_cast<std::uintptr_t>(state.uc_mcontext.gregs[REG_RIP]);
    const auto* const code = reinterpret_cast<const void*>(at);
    code_bytes found;
    if (guarded_copy(found.bytes.data(), code, longest) == copy_status::ok) {
        found.length = longest;
        return found;
    }
    // The code ends with this page.
    const std::size_t rest = std::min<std::size_t>(longest, code_page - at % code_page);
    found.length           = guarded_copy(found.bytes.data(), code, rest) == copy_status::ok ? rest : 0;
    return found;
}

// The store that this thread was stopped at last: programs ring from few places, and decoding takes 0.2 us.
struct decoded_store {
    bool in_use = false; // by this thread, below the signal that it handles now
    code_bytes code;
    std::optional<store_instruction> store;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local decoded_store last_store = {};

std::uintptr_t address_of(const ucontext_t& state, unsigned base, std::int32_t displacement)
{
    return static_cast<std::uintptr_t>(state.uc_mcontext.gregs[register_order[base]] + displacement);
}

bool load_vector(ucontext_t& state, const vector_load& load)
{
    const auto from = address_of(state, load.base, load.displacement);
    std::array<std::byte, 16> value;
    if (state.uc_mcontext.fpregs == nullptr ||
        guarded_copy(value.data(), reinterpret_cast<const void*>(from), value.size()) != copy_status::ok) {
        return false;
    }
    std::memcpy(&state.uc_mcontext.fpregs->_xmm[load.number], value.data(), value.size());
    return true;
}

} // namespace

bool interrupted_thread::was_writing() const
{
    return (state_of(_context).uc_mcontext.gregs[REG_ERR] & write_fault) != 0;
}

std::optional<store_instruction> interrupted_thread::store() const
{
    const code_bytes code = code_at(state_of(_context));
    if (std::exchange(last_store.in_use, true)) {
        return decode_store_x86_64(code.view());
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (!std::ranges::equal(last_store.code.view(), code.view())) {
        last_store.store = decode_store_x86_64(code.view());
        last_store.code  = code;
    }
    const auto found = last_store.store;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    last_store.in_use = false;
    return found;
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

// The frame takes over loaded registers only if it has vector state in use; it has, because a vector store was just
// executed.
void interrupted_thread::skip_copy_into(std::uintptr_t first, std::size_t length)
{
    ucontext_t& state = state_of(_context);
    for (;;) {
        const code_bytes code = code_at(state);
        if (const auto load = decode_load_x86_64(code.view())) {
            if (!load_vector(state, *load)) {
                return; // the thread faults there itself
            }
            state.uc_mcontext.gregs[REG_RIP] += load->length;
            continue;
        }
        const auto next = decode_store_x86_64(code.view());
        if (!next || next->source != store_source::vector || next->base == no_register ||
            address_of(state, next->base, next->displacement) - first > length - next->width) {
            return;
        }
        state.uc_mcontext.gregs[REG_RIP] += next->length;
    }
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

// The kernel puts records after the registers, each with a magic number and its size.
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
    std::uint32_t code   = 0;
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

void interrupted_thread::skip_copy_into(std::uintptr_t, std::size_t)
{
}

bool interrupted_thread::begin_step()
{
    return false;
}

void interrupted_thread::end_step()
{
}

#else
#error "softhca knows the doorbell stores of x86-64 and aarch64 only"
#endif

} // namespace ucxl::softhca
