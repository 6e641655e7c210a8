#include "memory_key.h"

#include <algorithm>
#include <atomic>

#include "access_flags.h"
#include "prm/mkey.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint64_t page_bytes  = 4096;
constexpr unsigned entries_multiple = 4;

using create_mailbox = mailbox<prm::create_mkey_in>;

// The variant byte, in which a key differs from the previous key with its index.
std::uint8_t next_variant()
{
    static std::atomic<std::uint8_t> last{0};
    return ++last;
}

void set_common(create_mailbox& input, const pd_object& pd, std::uint8_t variant, prm::mkey_access_mode mode)
{
    const auto context = input.at(prm::create_mkey_in::memory_key);
    prm::set_access_mode(context, mode);
    input.set(context, prm::mkc::qpn, prm::any_qpn);
    input.set(context, prm::mkc::mkey_7_0, variant);
    input.set(context, prm::mkc::pd, pd.pdn);
    input.set(context, prm::mkc::lr, 1);
}

void set_access(create_mailbox& input, std::uint32_t access)
{
    const auto context = input.at(prm::create_mkey_in::memory_key);
    const auto allow = [&](auto field, std::uint32_t flag) { input.set(context, field, (access & flag) != 0 ? 1 : 0); };
    allow(prm::mkc::lw, IB_UVERBS_ACCESS_LOCAL_WRITE);
    allow(prm::mkc::rr, IB_UVERBS_ACCESS_REMOTE_READ);
    allow(prm::mkc::rw, IB_UVERBS_ACCESS_REMOTE_WRITE);
    allow(prm::mkc::a, IB_UVERBS_ACCESS_REMOTE_ATOMIC);
    allow(prm::mkc::relaxed_ordering_write, IB_UVERBS_ACCESS_RELAXED_ORDERING);
    allow(prm::mkc::relaxed_ordering_read, IB_UVERBS_ACCESS_RELAXED_ORDERING);
}

void set_region(create_mailbox& input, const pinned_memory& memory, std::uint64_t iova, std::uint64_t length,
                std::uint32_t access)
{
    set_access(input, access);
    const auto context = input.at(prm::create_mkey_in::memory_key);
    input.set(context, prm::mkc::umr_en, 1);
    input.set(context, prm::mkc::start_addr, iova);
    input.set(context, prm::mkc::len, length);
    // Two page entries have 16 bytes.
    const std::uint64_t pages = ((iova % page_bytes) + length + page_bytes - 1) / page_bytes;
    input.set(context, prm::mkc::translations_octword_size, std::min<std::uint64_t>((pages + 1) / 2, UINT32_MAX));
    input.set(prm::create_mkey_in::pg_access, 1);
    input.set(prm::create_mkey_in::mkey_umem_valid, 1);
    input.set(prm::create_mkey_in::mkey_umem_id, memory.id());
}

int create(device_file& file, create_mailbox& input, std::uint8_t variant, std::uint32_t& key)
{
    prm::storage<prm::create_mkey_out> output;
    if (const int error = file.run_as_kernel(input, output); error != 0) {
        return error;
    }
    key = (*output).get(prm::create_mkey_out::mkey_index) << 8 | variant;
    return 0;
}

} // namespace

int make_region_key(device_file& file, const pd_object& pd, const pinned_memory& memory, std::uint64_t iova,
                    std::uint64_t length, std::uint32_t access, std::uint32_t& key)
{
    const std::uint8_t variant = next_variant();
    create_mailbox input(prm::command::create_mkey);
    set_common(input, pd, variant, prm::mkey_access_mode::mtt);
    set_region(input, memory, iova, length, access);
    return create(file, input, variant, key);
}

int replace_region_key(device_file& file, const pd_object& pd, const pinned_memory& memory, std::uint64_t iova,
                       std::uint64_t length, std::uint32_t access, std::uint32_t key)
{
    create_mailbox input(prm::command::create_mkey);
    set_common(input, pd, static_cast<std::uint8_t>(key), prm::mkey_access_mode::mtt);
    set_region(input, memory, iova, length, access);
    return input.fits() ? error_of(file.device.replace_region(file.function, key, input.bytes())) : EINVAL;
}

int make_device_memory_key(device_file& file, const pd_object& pd, std::uint64_t offset, std::uint64_t length,
                           std::uint32_t access, std::uint32_t& key)
{
    const std::uint8_t variant = next_variant();
    create_mailbox input(prm::command::create_mkey);
    set_common(input, pd, variant, prm::mkey_access_mode::memic);
    set_access(input, access);
    const auto context = input.at(prm::create_mkey_in::memory_key);
    input.set(context, prm::mkc::start_addr, offset);
    input.set(context, prm::mkc::len, length);
    return create(file, input, variant, key);
}

int make_window_key(device_file& file, const pd_object& pd, unsigned entries, bool type_2, std::uint32_t& key)
{
    const unsigned room        = (std::max(entries, 1U) + entries_multiple - 1) / entries_multiple * entries_multiple;
    const std::uint8_t variant = next_variant();
    create_mailbox input(prm::command::create_mkey);
    set_common(input, pd, variant, prm::mkey_access_mode::klm);
    const auto context = input.at(prm::create_mkey_in::memory_key);
    input.set(context, prm::mkc::free, 1);
    input.set(context, prm::mkc::umr_en, 1);
    input.set(context, prm::mkc::en_rinval, type_2 ? 1 : 0);
    input.set(context, prm::mkc::translations_octword_size, room);
    return create(file, input, variant, key);
}

int destroy_key(device_file& file, std::uint32_t key)
{
    mailbox<prm::destroy_mkey_in> input(prm::command::destroy_mkey);
    input.set(prm::destroy_mkey_in::mkey_index, key >> 8);
    return file.run_as_kernel(input);
}

} // namespace ucxl::softhca
