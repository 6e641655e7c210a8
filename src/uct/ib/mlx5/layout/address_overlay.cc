#include "address_overlay.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "prm/mkey.h"
#include "protection_domain.h"

namespace ucxl::mlx5
{

namespace
{

constexpr unsigned log_entity_size   = 31;
constexpr std::uint64_t entity_bytes = std::uint64_t{1} << log_entity_size;
constexpr std::size_t num_entities   = 64;
constexpr std::uint64_t word_bytes   = 8; // of the longest atomic operation
// UCX has found that a device may count one entity more than the length says if the start is not aligned.
constexpr std::uint64_t most_bytes  = (num_entities - 1) * entity_bytes;
constexpr std::size_t command_bytes = prm::create_mkey_in::size_bytes + num_entities * prm::ksm::size_bytes;

// The low byte of a key, in which it differs from the one before with its index: the device may use an index at once.
std::uint8_t next_variant()
{
    static std::atomic<std::uint8_t> last{0};
    return ++last;
}

void describe_key(prm::view<prm::mkc> context, std::uint32_t pdn, std::uint64_t address, std::uint64_t length,
                  const key_rights& rights, bool has_relaxed_order)
{
    prm::set_access_mode(context, prm::mkey_access_mode::ksm);
    context.put(prm::mkc::lw, rights.local_write);
    context.put(prm::mkc::rr, rights.remote_read);
    context.put(prm::mkc::rw, rights.remote_write);
    context.put(prm::mkc::a, rights.remote_atomic);
    context.put<true>(prm::mkc::lr);
    context.put(prm::mkc::relaxed_ordering_write, has_relaxed_order);
    context.put<prm::any_qpn>(prm::mkc::qpn);
    (void)context.set(prm::mkc::pd, pdn & 0xffffff);
    context.put(prm::mkc::start_addr, address);
    context.put(prm::mkc::len, length);
    context.put<num_entities>(prm::mkc::translations_octword_size);
    context.put<log_entity_size>(prm::mkc::log_entity_size);
}

} // namespace

result<address_overlay> address_overlay::create(ibv_pd* pd, std::uint32_t target, std::uint64_t address,
                                                const key_rights& rights, bool has_relaxed_order)
{
    const auto pdn = UCXL_TRY(protection_domain_number(pd));
    // "FW requires indirect atomic MR address and length to be aligned to max supported atomic argument size" (UCX).
    key_rights allowed    = rights;
    allowed.remote_atomic = rights.remote_atomic && address % word_bytes == 0;
    // Up to the end of the address space.
    const std::uint64_t most   = std::min(most_bytes, ~address);
    const std::uint64_t length = allowed.remote_atomic ? most / word_bytes * word_bytes : most;
    alignas(8) std::array<std::byte, command_bytes> input{};
    const auto command = *prm::view<prm::create_mkey_in>::over(input);
    command.put<prm::command::create_mkey>(prm::create_mkey_in::opcode);
    command.put<num_entities>(prm::create_mkey_in::translations_octword_actual_size);
    const std::uint8_t variant = next_variant();
    describe_key(command.at(prm::create_mkey_in::memory_key), pdn, address, length, allowed, has_relaxed_order);
    command.at(prm::create_mkey_in::memory_key).put(prm::mkc::mkey_7_0, variant);
    for (std::size_t i = 0; i < num_entities; ++i) {
        const auto place = std::span(input).subspan(prm::create_mkey_in::size_bytes + i * prm::ksm::size_bytes);
        const prm::view<prm::ksm> entry(place.first<prm::ksm::size_bytes>());
        entry.put(prm::ksm::mkey, target);
        entry.put(prm::ksm::address, i * entity_bytes);
    }
    prm::storage<prm::create_mkey_out> out;
    devx_owner overlay(
        mlx5dv_devx_obj_create(pd->context, input.data(), input.size(), out.bytes.data(), out.bytes.size()));
    if (overlay == nullptr) {
        return fail_errno(std::format("a memory key at address 0x{:x} (syndrome 0x{:x})", address,
                                      (*out).get(prm::create_mkey_out::syndrome))
                              .c_str());
    }
    const std::uint32_t index = (*out).get(prm::create_mkey_out::mkey_index);
    return address_overlay(std::move(overlay), index << 8 | variant, length);
}

} // namespace ucxl::mlx5
