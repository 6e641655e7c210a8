// A remote key of lay_shm whose owner lies (src/uct/layout/peer/import.cc): any record, and any regions behind it,
// which the owner changes while the window is used. Each byte that a window of it shows is the one of the file that the
// record names, or the key is refused. Nobody gets a signal when the owner makes a file shorter.
//
// The owner is this process: importing asks the system for the files of whatever process a key names.
#include "fuzz_target.h"

#include "sys/memory_file.h"
#include "sys/pages.h"
#include "sys/process.h"
#include "ucs/layout/build.h"
#include "ucs/layout/walk.h"
#include "ucs/window/reader_section.h"
#include "uct/layout/peer/import.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ucxl;
using fuzz::require;

namespace
{

constexpr std::uint64_t record_room = 4096, record_at = 64, num_pages = 4;

template <typename T>
T needed(result<T> made)
{
    require(made.has_value(), "the target itself has what it needs");
    return std::move(*made);
}

struct stat status_of(const owned_fd& file)
{
    struct stat status{};
    fstat(file.get(), &status);
    return status;
}

std::uint64_t inode_of(const owned_fd& file)
{
    return status_of(file).st_ino;
}

std::uint32_t device_of(const owned_fd& file)
{
    return static_cast<std::uint32_t>(status_of(file).st_dev);
}

std::vector<layout_ptr> some_layouts()
{
    const dim rows[] = {{40, 24}}, back[] = {{10, -100}};
    const auto words        = needed(make_strided({.length = 16}, rows));
    const auto down         = needed(make_strided({.length = 7}, back));
    const iov_part two[]    = {{0, 0, {.nested = words}}, {1, 8, {.length = 3000}}};
    const iov_part second[] = {{1, 0, {.length = 5}}};
    const iov_part single[] = {{0, 0, {.length = 100}}};
    return {needed(make_iov(single)), words, down, needed(make_iov(two)), needed(make_iov(second))};
}

// Files of the owner. One of them may become shorter.
struct owner_files {
    owned_fd records             = needed(make_memory_file("records", record_room, F_SEAL_SHRINK));
    std::array<owned_fd, 3> data = {needed(make_memory_file("data", num_pages* page_length(), F_SEAL_SHRINK)),
                                    needed(make_memory_file("data", num_pages* page_length(), F_SEAL_SHRINK)),
                                    needed(make_memory_file("data", num_pages* page_length(), 0))};
    std::array<std::vector<std::byte>, 3> contents = {content_of(0), content_of(1), content_of(2)};
    std::vector<layout_ptr> layouts                = some_layouts();
    std::uint64_t last_generation                  = 0;

    static owner_files& instance()
    {
        static owner_files& one = *new owner_files; // never destroyed
        return one;
    }

    void renew()
    {
        ++last_generation;
        require(ftruncate(data[2].get(), static_cast<off_t>(num_pages * page_length())) == 0, "ftruncate");
        for (std::size_t file = 0; file < data.size(); ++file) {
            require(write_all(data[file], 0, contents[file]), "write");
        }
    }

    static std::vector<std::byte> content_of(std::size_t file)
    {
        std::vector<std::byte> bytes(num_pages * page_length());
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<std::byte>(i * 7 + i / 256 + file);
        }
        return bytes;
    }
};

// What the bytes choose for a place: mostly what is right.
struct place_choice {
    std::uint8_t file; // which one; other numbers: any descriptor
    std::uint8_t lies; // a bit for each field that has the number below
    std::int16_t base;
    std::uint32_t number;
};

shm_place place_of(const place_choice& chosen, const owner_files& files)
{
    const owned_fd& file = files.data[chosen.file % files.data.size()];
    shm_place place{.base        = chosen.base,
                    .inode       = inode_of(file),
                    .file_offset = chosen.number % 2 * page_length(),
                    .length      = (1 + chosen.number / 2 % 3) * page_length(),
                    .fd          = file.get(),
                    .device      = device_of(file)};
    const std::uint64_t number = std::uint64_t{chosen.number} << (chosen.file / 16 * 3);
    const auto lies            = [&](unsigned bit) { return (chosen.lies >> bit & 1) != 0; };
    place.base                 = lies(0) ? static_cast<std::int64_t>(number) : place.base;
    place.inode                = lies(1) ? number : place.inode;
    place.file_offset          = lies(2) ? number : place.file_offset;
    place.length               = lies(3) ? number : place.length;
    place.fd                   = lies(4) ? static_cast<std::int32_t>(number) : place.fd;
    place.device               = lies(5) ? chosen.number : place.device;
    return lies(6) ? shm_place{} : place;
}

struct key_choices {
    std::uint8_t layout;
    std::uint8_t lies; // in the key or in the header
    std::uint16_t number;
    std::uint32_t where; // a byte of the record that is changed
    place_choice places[2];
};

using places = std::array<shm_place, 2>;

bool is_readable(const owned_fd& file, std::uint64_t at, std::byte& byte)
{
    return read_all(file, at, std::span(&byte, 1));
}

const owned_fd* file_of(const owner_files& files, const shm_place& place)
{
    // A region that is mapped already is not looked for by its descriptor again.
    const auto found = std::ranges::find_if(files.data, [&](const owned_fd& each) {
        return inode_of(each) == place.inode && device_of(each) == place.device;
    });
    return found == files.data.end() ? nullptr : &*found;
}

// Each byte that the window shows is that of its file. None of it gives a signal.
void look_at_all(const owner_files& files, const imported_window& window, const places& told, bool may_be_cut)
{
    const reader_section section;
    const mapped_sources& sources = sources_of(window);
    std::uint64_t blocks          = 0;
    for_each_block(*window.described, 0, window.described->packed_length(), [&](const placed_block& block) {
        for (const std::uint64_t at : {std::uint64_t{0}, block.length - 1}) {
            std::byte* const shown = sources.bases[block.source] + block.offset + at;
            const shm_place& place = told[block.source];
            const std::uint64_t in_region =
                static_cast<std::uint64_t>(place.base) + static_cast<std::uint64_t>(block.offset) + at;
            const std::byte seen = *static_cast<volatile std::byte*>(shown);
            if (may_be_cut) {
                continue;
            }
            require(in_region < place.length, "inside of the region");
            const owned_fd* const file = file_of(files, place);
            std::byte expected{};
            require(file != nullptr && is_readable(*file, place.file_offset + in_region, expected),
                    "a file of the owner");
            require(seen == expected, "the byte of the file");
            *shown = ~expected;
            require(is_readable(*file, place.file_offset + in_region, expected) && expected == ~seen, "a byte is put");
        }
        return ++blocks < 100;
    });
}

class key_scene
{
public:
    explicit key_scene(const key_choices& chosen)
        : _files(owner_files::instance()), _layout(_files.layouts[chosen.layout % _files.layouts.size()])
    {
        _files.renew();
        _generation = _files.last_generation;
        _told       = {place_of(chosen.places[0], _files), place_of(chosen.places[1], _files)};
        const shm_record_header header{_generation, 2, _layout->num_sources(), 0};
        std::vector<std::byte> bytes(record_length(*_layout));
        require(pack_record(header, std::span(_told).first(header.num_sources), *_layout, bytes).has_value(), "packed");
        const auto lies = [&](unsigned bit) { return (chosen.lies >> bit & 1) != 0; };
        if (lies(0)) {
            bytes[chosen.where % bytes.size()] ^= static_cast<std::byte>(chosen.number | 1);
            _is_changed = true;
        }
        require(write_all(_files.records, record_at, bytes), "write");
        _key = {.magic         = shm_key::form,
                .access        = shm_access::mapping,
                .owner         = process_identity::own(),
                .address       = std::uint64_t{chosen.number} << 40,
                .length        = _layout->packed_length(),
                .generation    = _generation,
                .records_inode = inode_of(_files.records),
                .record_offset = record_at,
                .record_length = static_cast<std::uint32_t>(bytes.size()),
                .records_fd    = _files.records.get()};
        _key.length += lies(1) ? chosen.number : 0;
        _key.record_offset += lies(2) ? std::uint64_t{chosen.number} * 8 : 0;
        _key.record_length += lies(3) ? chosen.number : 0;
        _key.records_fd = lies(4) ? chosen.number : _key.records_fd;
        _key.records_inode += lies(5) ? chosen.number : 0;
        _key.owner.start_time += lies(6) ? chosen.number : 0;
    }
    key_scene(const key_scene&)            = delete;
    key_scene& operator=(const key_scene&) = delete;
    ~key_scene()
    {
        if (_window != nullptr) {
            release_window(_window);
        }
        drop_idle_imports();
        require(count_imports().windows == 0 && count_imports().regions == 0, "nothing stays mapped");
    }

    void run(std::span<const std::byte> bytes)
    {
        auto imported = import_window(_key);
        if (!imported) {
            require(!imported.error().message.empty(), "an error says why");
            return;
        }
        _window = *imported;
        // A record with a changed byte may be another sound one; what it says was not looked at.
        look_at_all(_files, *_window, _told, _is_changed);
        place_choice changed[2];
        while (bytes.size() > sizeof(changed)) {
            const auto what = std::to_integer<unsigned>(bytes[0]);
            std::memcpy(&changed, bytes.data() + 1, sizeof(changed));
            bytes = bytes.subspan(sizeof(changed) + 1);
            change(what, changed);
            const bool is_usable = is_usable_now(*_window);
            if (is_usable && !_is_changed) {
                look_at_all(_files, *_window, _told, _is_cut);
            }
            // What was mapped before can always be touched.
            look_at_all(_files, *_window, _told, true);
        }
    }

private:
    void write_word(std::uint64_t at, std::uint64_t word)
    {
        require(write_all(_files.records, record_at + at, std::as_bytes(std::span(&word, 1))), "write");
    }

    // What the owner does meanwhile.
    void change(unsigned what, const place_choice (&chosen)[2])
    {
        switch (what % 4) {
        case 0: { // it binds the window anew
            _binding += 2;
            write_word(offsetof(shm_record_header, binding), _binding - 1);
            _told              = {place_of(chosen[0], _files), place_of(chosen[1], _files)};
            const auto written = std::as_bytes(std::span(_told).first(_layout->num_sources()));
            require(write_all(_files.records, record_at + sizeof(shm_record_header), written), "write");
            write_word(offsetof(shm_record_header, binding), _binding);
            break;
        }
        case 1: // any word of the record, at any time
            _is_changed = true;
            write_word(chosen[0].number % (record_length(*_layout) / 8) * 8, chosen[1].number);
            break;
        case 2: // the file becomes shorter
            _is_cut = true;
            require(ftruncate(_files.data[2].get(), chosen[0].base & 0x3fff) == 0, "ftruncate");
            break;
        default: // the window ends
            write_word(0, 0);
        }
    }

    owner_files& _files;
    layout_ptr _layout;
    places _told{};
    shm_key _key{};
    std::uint64_t _generation = 0, _binding = 2;
    bool _is_changed = false, _is_cut = false;
    imported_window* _window = nullptr;
};

} // namespace

UCXL_FUZZ_TARGET(shm_import)
{
    key_choices chosen;
    if (size >= sizeof(chosen)) {
        std::memcpy(&chosen, data, sizeof(chosen));
        key_scene(chosen).run(std::as_bytes(std::span(data, size)).subspan(sizeof(chosen)));
    }
    return 0;
}
