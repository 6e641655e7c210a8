#include "describe.h"

#include <unordered_map>

#include "ucs/layout/build.h"
#include "ucs/layout/wire.h"
#include "ucs/sys/status.h"

namespace ucxl::mlx5
{

namespace
{

// Pieces of one key that are this near are one source with several offsets.
constexpr std::int64_t same_source_bytes = std::int64_t{1} << 40;

// Turns {key, address} into {source, offset}: addresses of all kinds have to fit the offsets a layout may have, and
// pieces that continue each other have to be seen to.
class sources
{
public:
    struct place {
        std::uint32_t source;
        std::int64_t offset;
    };

    place of(std::uint32_t lkey, std::uint64_t address)
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

std::unexpected<failure> failed(const error& why)
{
    return mlx5::failed(to_status(why.code), why.message);
}

outcome<description> described(result<layout_ptr>&& made, sources& from)
{
    if (!made) {
        return failed(made.error());
    }
    return description{std::move(*made), from.take()};
}

} // namespace

outcome<description> describe_list(std::span<const ibv_sge> pieces)
{
    sources from;
    std::vector<iov_part> parts;
    parts.reserve(pieces.size());
    for (const ibv_sge& piece : pieces) {
        const auto [source, offset] = from.of(piece.lkey, piece.addr);
        parts.push_back({source, offset, {piece.length, nullptr}});
    }
    return described(make_iov(parts), from);
}

outcome<description> describe_interleaved(std::span<const uct_mlx5_layout_item_t> items)
{
    sources from;
    std::vector<interleaved_part> parts;
    std::vector<std::vector<dim>> dims(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
        const uct_mlx5_layout_item_t& item = items[i];
        if (item.num_repeated == 0) {
            return mlx5::failed(UCS_ERR_INVALID_PARAM, std::format("items[{}].num_repeated is 0", i));
        }
        if (item.num_dimensions != 0 && item.dims == nullptr) {
            return mlx5::failed(UCS_ERR_INVALID_PARAM, std::format("items[{}].dims is NULL", i));
        }
        // The first dimension of S1 is the fastest, the last one of a layout is.
        for (std::uint32_t d = item.num_dimensions; d-- > 0;) {
            if (item.dims[d].datum_count == 0) {
                return mlx5::failed(UCS_ERR_INVALID_PARAM, std::format("items[{}].dims[{}].datum_count is 0", i, d));
            }
            dims[i].push_back({item.dims[d].datum_count, item.dims[d].offset_stride});
        }
        const auto [source, offset] = from.of(item.first_datum.lkey, item.first_datum.addr);
        parts.push_back({source, offset, {item.first_datum.length, nullptr}, item.num_repeated, dims[i]});
    }
    return described(make_interleaved(parts), from);
}

outcome<description> describe_wire(std::span<const std::byte> wire, std::span<const uct_mlx5_layout_base_t> bases)
{
    result<layout_ptr> of = unpack_wire(wire);
    if (!of) {
        return failed(of.error());
    }
    std::vector<source_base> places;
    places.reserve(bases.size());
    for (const uct_mlx5_layout_base_t& base : bases) {
        places.push_back({base.address, base.lkey});
    }
    return description{std::move(*of), std::move(places)};
}

} // namespace ucxl::mlx5
