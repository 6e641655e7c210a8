#include "zcopy_layer.h"

#include "log.h"

#include "sys/object_around.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace ucxl::abi
{

namespace
{

using open_function = decltype(tl::iface_open);

struct operations {
    uct_ep_put_zcopy_func_t put = nullptr;
    uct_ep_get_zcopy_func_t get = nullptr;
    uct_ep_am_zcopy_func_t am   = nullptr;

    bool operator==(const operations&) const = default;
};

// An operation finds the stock one by its own address, without a table of interfaces: there are few transports.
constexpr std::size_t max_transports = 16;

std::mutex lock; // guards what follows, except that operations in use do not change
std::vector<std::pair<std::string_view, open_function>> openers; // by the name of the transport
std::array<operations, max_transports> stock;
zcopy_layer covering;

ucs_status_t run(const zcopy_call& call) noexcept
{
    try {
        return covering.run(call);
    } catch (const std::exception& failure) {
        ucs_error("a transfer of memory of another network card: %s", failure.what());
        return UCS_ERR_NO_MEMORY;
    }
}

template <std::size_t Number>
struct covered {
    static ucs_status_t put(uct_ep_h ep, const uct_iov_t* iov, std::size_t count, std::uint64_t address,
                            uct_rkey_t rkey, uct_completion_t* completion)
    {
        if (!covering.is_needed({iov, count})) [[likely]] {
            return stock[Number].put(ep, iov, count, address, rkey, completion);
        }
        return run({{iov, count}, false, completion, [&](std::span<const uct_iov_t> parts, uct_completion_t* done) {
                        return stock[Number].put(ep, parts.data(), parts.size(), address, rkey, done);
                    }});
    }

    static ucs_status_t get(uct_ep_h ep, const uct_iov_t* iov, std::size_t count, std::uint64_t address,
                            uct_rkey_t rkey, uct_completion_t* completion)
    {
        if (!covering.is_needed({iov, count})) [[likely]] {
            return stock[Number].get(ep, iov, count, address, rkey, completion);
        }
        return run({{iov, count}, true, completion, [&](std::span<const uct_iov_t> parts, uct_completion_t* done) {
                        return stock[Number].get(ep, parts.data(), parts.size(), address, rkey, done);
                    }});
    }

    static ucs_status_t am(uct_ep_h ep, std::uint8_t id, const void* header, unsigned header_length,
                           const uct_iov_t* iov, std::size_t count, unsigned flags, uct_completion_t* completion)
    {
        if (!covering.is_needed({iov, count})) [[likely]] {
            return stock[Number].am(ep, id, header, header_length, iov, count, flags, completion);
        }
        return run({{iov, count}, false, completion, [&](std::span<const uct_iov_t> parts, uct_completion_t* done) {
                        return stock[Number].am(ep, id, header, header_length, parts.data(), parts.size(), flags, done);
                    }});
    }
};

template <std::size_t... Numbers>
constexpr std::array<operations, max_transports> all_covered(std::index_sequence<Numbers...>)
{
    return {operations{covered<Numbers>::put, covered<Numbers>::get, covered<Numbers>::am}...};
}

constexpr auto covers = all_covered(std::make_index_sequence<max_transports>());

void cover(uct_iface_ops_t& operations_of_interface)
{
    const operations own{operations_of_interface.ep_put_zcopy, operations_of_interface.ep_get_zcopy,
                         operations_of_interface.ep_am_zcopy};
    const std::lock_guard guard(lock);
    auto* const place =
        std::ranges::find_if(stock, [&](const operations& known) { return known == own || known == operations{}; });
    if (place == stock.end()) {
        ucs_diag("a transport more than %zu cannot use memory of other network cards", max_transports);
        return;
    }
    *place                               = own;
    const operations& instead            = covers[static_cast<std::size_t>(place - stock.begin())];
    operations_of_interface.ep_put_zcopy = instead.put;
    operations_of_interface.ep_get_zcopy = instead.get;
    operations_of_interface.ep_am_zcopy  = instead.am;
}

open_function stock_opener(std::string_view name)
{
    const std::lock_guard guard(lock);
    const auto* const found =
        std::to_address(std::ranges::find(openers, name, [](const auto& each) { return each.first; }));
    return found->second;
}

// UCT opens interfaces of devices by the name of the transport.
ucs_status_t open_covered(uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                          const uct_iface_config_t* config, uct_iface_h* interface)
{
    const auto status = stock_opener(params->mode.device.tl_name)(md, worker, params, config, interface);
    if (status == UCS_OK) {
        cover((*interface)->ops);
    }
    return status;
}

} // namespace

void cover_transports(uct_component& component, const zcopy_layer& layer)
{
    const std::lock_guard guard(lock);
    covering = layer;
    for (auto* link = component.tl_list.next; link != &component.tl_list; link = link->next) {
        tl& transport = *object_around<tl>(link, offsetof(tl, list));
        if (transport.iface_open != open_covered) {
            openers.emplace_back(transport.name, transport.iface_open);
            transport.iface_open = open_covered;
        }
    }
}

} // namespace ucxl::abi
