// Registered memory for translation entries that do not fit into a bind request, in slabs that are registered once.
//
// Thread safety: none; the lock of the domain guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "sys/error.h"
#include "verbs_handles.h"

namespace ucxl::mlx5
{

class staging
{
public:
    explicit staging(ibv_pd* pd) : _pd(pd) {}

    // A piece of a slab, aligned to pointer_alignment.
    struct room {
        std::span<std::byte> bytes;
        std::uint32_t lkey = 0;
        std::size_t slab   = 0;
    };

    result<room> take(std::size_t size);
    void give_back(const room& unused) noexcept;

private:
    struct free_memory {
        void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
    };

    struct slab {
        std::unique_ptr<std::byte, free_memory> memory;
        mr_owner registration;                     // must end before the memory
        std::map<std::size_t, std::size_t> unused; // offset, length
    };

    static constexpr std::align_val_t alignment{4096};
    static constexpr std::size_t slab_bytes = std::size_t{1} << 20;

    static bool take_from(slab& one, std::size_t size, std::size_t& offset);
    result<void> add_slab(std::size_t size);
    void add_gap(const room& unused);

    ibv_pd* _pd;
    std::vector<slab> _slabs;
};

} // namespace ucxl::mlx5
