#include "temporary_buffer.h"

#include "examples/common/check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <new>
#include <sys/mman.h>

namespace examples
{

static constexpr std::size_t unit         = exchange_plan::unit_bytes;
static constexpr std::size_t half         = unit / 2;
static constexpr std::size_t row_bytes    = 3 * unit;
static constexpr std::size_t record_bytes = 96;

// Of the memory that holds so many units.
static std::size_t memory_bytes(memory_form form, std::size_t units)
{
    switch (form) {
    case memory_form::plain:
        return units * unit;
    case memory_form::rows:
        return units * row_bytes;
    case memory_form::records:
        break;
    }
    return 2 * units * record_bytes;
}

std::size_t temporary_buffer::place_of(std::size_t position) const
{
    const std::size_t number = position / unit, within = position % unit;
    switch (_form) {
    case memory_form::plain:
        return position;
    case memory_form::rows:
        return number * row_bytes + within;
    case memory_form::records:
        break;
    }
    const std::size_t array = within / half * (_length / unit) * record_bytes;
    return array + number * record_bytes + within % half;
}

static ucx_layout::layout layout_of(memory_form form, std::size_t units)
{
    const auto count = static_cast<std::size_t>(units);
    if (form == memory_form::rows) {
        return must(ucx_layout::layout::create_strided(unit, {{.count = count, .stride = row_bytes}}),
                    "a layout of rows");
    }
    const ucp_layout_dim_t all{.count = count, .stride = record_bytes};
    std::array<ucp_layout_interleaved_t, 2> arrays{};
    for (std::uint32_t source = 0; source < arrays.size(); ++source) {
        arrays[source] = {.source   = source,
                          .offset   = 0,
                          .element  = {.length = half, .layout = nullptr},
                          .repeat   = 1,
                          .dims     = &all,
                          .num_dims = 1};
    }
    return must(ucx_layout::layout::interleave(arrays), "a layout of records");
}

temporary_buffer::temporary_buffer(ucp_context_h context, const exchange_plan& plan, message_of_plan message,
                                   memory_form form)
    : _context(context), _plan(plan), _message(message), _form(form), _length(plan.length_bytes(message))
{
    const std::size_t bytes = memory_bytes(_form, _length / unit);
    void* const memory      = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    _memory = static_cast<std::byte*>(memory);
    try {
        map();
    } catch (...) {
        munmap(_memory, bytes);
        throw;
    }
    std::ranges::fill(this->memory(), gap);
}

void temporary_buffer::map()
{
    if (_form == memory_form::plain) {
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address    = _memory;
        params.length     = _length;
        check(ucp_mem_map(_context, &params, &_registered), "ucp_mem_map");
        return;
    }
    const std::size_t units = _length / unit;
    const std::array<const void*, 2> bases{_memory, _memory + units * record_bytes};
    _window = must(ucx_layout::window::map(_context, layout_of(_form, units),
                                           std::span(bases).first(_form == memory_form::rows ? 1 : 2)),
                   "ucp_layout_map");
}

temporary_buffer::~temporary_buffer()
{
    if (_registered != nullptr) {
        ucp_mem_unmap(_context, _registered);
    }
    _window.reset();
    munmap(_memory, memory().size());
}

std::span<std::byte> temporary_buffer::memory() const
{
    return {_memory, memory_bytes(_form, _length / unit)};
}

std::vector<std::byte> temporary_buffer::expected() const
{
    std::vector<std::byte> bytes(memory().size(), gap);
    for (std::size_t position = 0; position < _length; position += sizeof(std::uint64_t)) {
        const std::uint64_t word = _plan.word_at(_message, position);
        std::memcpy(&bytes[place_of(position)], &word, sizeof(word));
    }
    return bytes;
}

void temporary_buffer::fill()
{
    std::ranges::copy(expected(), _memory);
}

exported_buffer temporary_buffer::exported() const
{
    const ucp_memh_pack_params_t params{.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS,
                                        .flags      = UCP_MEMH_PACK_FLAG_EXPORT};
    void* buffer       = nullptr;
    std::size_t length = 0;
    check(ucp_memh_pack(_window ? _window->memh() : _registered, &params, &buffer, &length),
          _window ? "ucp_memh_pack of a window, which needs a hardware key (UCX_LAYOUT_KEYS_WINDOWS)"
                  : "ucp_memh_pack");
    exported_buffer made{.address = reinterpret_cast<std::uintptr_t>(_window ? _window->address() : _memory),
                         .length  = _length,
                         .handle  = std::string(static_cast<const char*>(buffer), length)};
    const ucp_memh_buffer_release_params_t release{};
    ucp_memh_buffer_release(buffer, &release);
    return made;
}

void temporary_buffer::verify(const char* name) const
{
    const std::vector<std::byte> right     = expected();
    const std::span<const std::byte> found = memory();
    const auto [bad, wanted]               = std::ranges::mismatch(found, right);
    if (bad != found.end()) {
        throw std::runtime_error(fmt::format(
            "round {}, {} from host {} to host {}, {} bytes: byte {} of the memory is {:#04x} instead of {:#04x}",
            _message.round, name, _message.sender, _message.receiver, _length, bad - found.begin(),
            std::to_integer<unsigned>(*bad), std::to_integer<unsigned>(*wanted)));
    }
}

} // namespace examples
