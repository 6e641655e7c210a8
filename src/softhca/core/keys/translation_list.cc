#include "translation_list.h"

#include <algorithm>
#include <cstring>

#include "prm/umr.h"

namespace ucxl::softhca
{

namespace
{

bool is_repeat_header(const translation_entry& entry)
{
    return prm::const_view<prm::repeat_block_header>(entry).get(prm::repeat_block_header::op) == prm::repeat_block_op;
}

// Computes the sums of entries `first` and later; earlier entries have theirs already.
void sum_klms(translation_table& table, const mkey_record& key, std::uint32_t first)
{
    std::uint64_t end = first == 0 ? 0 : table.ends[key.entries_first + first - 1];
    for (std::uint32_t i = key.entries_first + first; i < key.entries_first + key.entries_used; i++) {
        end += prm::const_view<prm::klm>(table.entries[i]).get(prm::klm::byte_count);
        table.ends[i] = end;
    }
}

void sum_repeat_block(translation_table& table, const mkey_record& key)
{
    const std::uint32_t first = key.entries_first;
    const prm::const_view<prm::repeat_block_header> header(table.entries[first]);
    const std::uint32_t entries = header.get(prm::repeat_block_header::num_ent);
    table.ends[first]           = 0;
    if (entries >= key.entries_used) {
        return;
    }
    std::uint64_t end = 0;
    for (std::uint32_t i = first + 1; i <= first + entries; i++) {
        end += prm::const_view<prm::repeat_block_entry>(table.entries[i]).get(prm::repeat_block_entry::byte_count);
        table.ends[i] = end;
    }
    if (end == header.get(prm::repeat_block_header::byte_count)) {
        table.ends[first] = end;
    }
}

} // namespace

bool is_repeat_block(std::span<const std::byte> entries)
{
    translation_entry first;
    if (entries.size() < first.size()) {
        return false;
    }
    std::ranges::copy(entries.first<sizeof(first)>(), first.begin());
    return is_repeat_header(first);
}

bool store_translations(arena& memory, mkey_record& key, std::uint32_t offset, std::span<const std::byte> entries)
{
    const std::size_t count = entries.size() / sizeof(translation_entry);
    if (offset > key.entries_room || count > key.entries_room - offset) {
        return false;
    }
    if (key.mode != prm::mkey_access_mode::klm && key.mode != prm::mkey_access_mode::ksm) {
        return false;
    }
    if (count == 0) {
        return true;
    }
    translation_table& table = memory.translations;
    std::memcpy(table.entries[key.entries_first + offset].data(), entries.data(), count * sizeof(translation_entry));
    // Entries in between are as the pool gave them: empty.
    const std::uint32_t unsummed = key.backing == mkey_backing::klm ? std::min(offset, key.entries_used) : 0;
    key.entries_used             = std::max(key.entries_used, static_cast<std::uint32_t>(offset + count));
    if (key.mode == prm::mkey_access_mode::ksm) {
        key.backing = mkey_backing::ksm;
    } else if (is_repeat_header(table.entries[key.entries_first])) {
        sum_repeat_block(table, key);
        key.backing = mkey_backing::repeat;
    } else {
        sum_klms(table, key, unsummed);
        key.backing = mkey_backing::klm;
    }
    return true;
}

std::span<const std::byte> translations(const arena& memory, const mkey_record& key)
{
    return std::as_bytes(std::span(memory.translations.entries).subspan(key.entries_first, key.entries_used));
}

} // namespace ucxl::softhca
