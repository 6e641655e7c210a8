#include "base_memory.h"

#include "abi/log.h"
#include "card_memory.h"

#include <cerrno>
#include <cstring>

namespace ucxl::mlx5
{

base_memory::held::~held()
{
    if (_entry != nullptr) {
        _memory->_cache->put(_entry);
    }
}

std::uint32_t base_memory::held::lkey() const
{
    return _entry != nullptr ? static_cast<const ibv_mr*>(abi::registration_cache::registration_of(_entry))->lkey
                             : _lkey;
}

// Peers come through the window key, which has the rights. The same rights below are what UCX gives memory that it
// shows through indirect keys.
void* base_memory::add(void* context, void* start, std::size_t length)
{
    auto& self = *static_cast<base_memory*>(context);
    constexpr int access =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    ibv_mr* const mr = ibv_reg_mr(self._pd, start, length, access);
    if (mr == nullptr) {
        ucs_debug("memory below a window, %zu bytes at %p: %s", length, start, std::strerror(errno));
        return nullptr;
    }
    self._bytes.fetch_add(length, std::memory_order_relaxed);
    return mr;
}

void base_memory::remove(void* context, void* registration, std::size_t length)
{
    auto& self = *static_cast<base_memory*>(context);
    if (const int error = ibv_dereg_mr(static_cast<ibv_mr*>(registration)); error != 0) {
        ucs_warn("memory below a window could not be deregistered: %s", std::strerror(error));
    }
    self._bytes.fetch_sub(length, std::memory_order_relaxed);
}

result<std::unique_ptr<base_memory>> base_memory::create(ibv_pd* pd)
{
    std::unique_ptr<base_memory> created(new base_memory(pd));
    created->_cache = UCXL_TRY(
        abi::registration_cache::create("layout_bases", {.add = add, .remove = remove, .context = created.get()}));
    return created;
}

result<base_memory::held> base_memory::hold(const memory_range& range)
{
    if (const card_memory* const card = _card) {
        if (const auto allocation = card->find(reinterpret_cast<const void*>(range.start), range.length())) {
            return held(allocation->key);
        }
    }
    return held(*this, UCXL_TRY(_cache->get(reinterpret_cast<void*>(range.start), range.length())));
}

} // namespace ucxl::mlx5
