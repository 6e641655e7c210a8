#include "describe.h"

#include <format>
#include <span>
#include <unordered_map>

#include "ucs/layout/build.h"
#include "ucs/layout/wire.h"
#include "ucs/sys/status.h"

namespace ucxl::mlx5
{

namespace
{

// Pieces of one key that are closer than this are one source with several offsets.
constexpr std::int64_t same_source_bytes = std::int64_t{1} << 40;

// Turns {key, address} into {source, offset}. Offsets are limited, while addresses may be anywhere; and pieces that
// continue each other must get the same source.
class sources
{
public:
    struct place {
        std::uint32_t source;
        std::int64_t offset;
    };

    place place_of(std::uint32_t lkey, std::uint64_t address)
    {
        for (const auto [found, end] = _by_key.equal_range(lkey); auto& near : std::ranges::subrange(found, end)) {
            const auto offset = static_cast<std::int64_t>(address - _bases[near.second].address);
            if (offset > -same_source_bytes && offset < same_source_bytes) {
                return {near.second, offset};
            }
        }
        const auto added = static_cast<std::uint32_t>(_bases.size());
        _bases.push_back({address, lkey});
        _by_key.emplace(lkey, added);
        return {added, 0};
    }

    std::vector<source_base> take() { return std::move(_bases); }

private:
    std::vector<source_base> _bases;
    std::unordered_multimap<std::uint32_t, std::uint32_t> _by_key;
};

std::unexpected<error> invalid(std::string message)
{
    return fail(errc::invalid_param, std::move(message));
}

result<void> check_array(const char* size_name, std::size_t size, const char* name, const void* array)
{
    if (size == 0) {
        return invalid(std::format("{} is 0", size_name));
    }
    if (array == nullptr) {
        return invalid(std::format("{} is NULL", name));
    }
    return {};
}

result<description> described(result<layout_ptr>&& layout, sources& from)
{
    auto shape = UCXL_TRY(std::move(layout));
    return description{std::move(shape), from.take()};
}

} // namespace

result<description> describe_list(const ibv_sge* sg_list, std::size_t num_sge)
{
    UCXL_TRY(check_array("num_sge", num_sge, "sg_list", sg_list));
    sources from;
    std::vector<iov_part> parts;
    parts.reserve(num_sge);
    for (const ibv_sge& piece : std::span(sg_list, num_sge)) {
        const auto [source, offset] = from.place_of(piece.lkey, piece.addr);
        parts.push_back({source, offset, {piece.length, nullptr}});
    }
    return described(make_iov(parts), from);
}

result<description> describe_interleaved(const uct_mlx5_layout_item_t* items, std::size_t num_items)
{
    UCXL_TRY(check_array("num_items", num_items, "items", items));
    sources from;
    std::vector<interleaved_part> parts;
    std::vector<std::vector<dim>> dims(num_items);
    for (std::size_t i = 0; i < num_items; ++i) {
        const uct_mlx5_layout_item_t& item = items[i];
        if (item.repeat == 0) {
            return invalid(std::format("items[{}].repeat is 0", i));
        }
        if (item.num_dims != 0 && item.dims == nullptr) {
            return invalid(std::format("items[{}].dims is NULL", i));
        }
        if (item.num_dims > limits::max_dims) {
            return fail(errc::exceeds_limit, std::format("items[{}].num_dims {} is over the limit of {}", i,
                                                         item.num_dims, limits::max_dims));
        }
        for (unsigned d = 0; d < item.num_dims; ++d) {
            if (item.dims[d].count == 0) {
                return invalid(std::format("items[{}].dims[{}].count is 0", i, d));
            }
            dims[i].push_back({item.dims[d].count, item.dims[d].stride});
        }
        const auto [source, offset] = from.place_of(item.element.lkey, item.element.addr);
        parts.push_back({source, offset, {item.element.length, nullptr}, item.repeat, dims[i]});
    }
    return described(make_interleaved(parts), from);
}

result<description> describe_wire(const void* wire, std::size_t length, const uct_mlx5_layout_base_t* bases,
                                  std::size_t num_bases)
{
    if (wire == nullptr || (num_bases != 0 && bases == nullptr)) {
        return invalid(wire == nullptr ? "wire is NULL" : "bases is NULL");
    }
    auto shape = UCXL_TRY(unpack_wire(std::span(static_cast<const std::byte*>(wire), length)));
    std::vector<source_base> places;
    places.reserve(num_bases);
    for (const uct_mlx5_layout_base_t& base : std::span(bases, num_bases)) {
        places.push_back({base.address, base.lkey});
    }
    return description{std::move(shape), std::move(places)};
}

} // namespace ucxl::mlx5
