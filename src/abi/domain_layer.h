// A layer over the memory domains that a stock component of UCX opens. Every domain gets a table of operations of its
// own, which calls the layer; what the layer does not change goes on to the stock operation. The stock table is back
// in its place before the stock domain closes.
//
// Example:
//     struct my_layer : domain_layer { ucs_status_t mem_reg(...) override { ...; return domain_layer::mem_reg(...); }
//     }; add_layers("ib", {.open = make_my_layer, .unpack = accept_key});
#pragma once

#include "uct.h"
#include "zcopy_layer.h"

#include <memory>
#include <optional>

struct ibv_context;
struct ibv_pd;

namespace ucxl::abi
{

// What a domain registers and so on, by type of memory; UCS_BIT(ucs_memory_type_t) each.
struct memory_type_masks {
    std::uint64_t reg;
    std::uint64_t reg_nonblock;
    std::uint64_t cache;
    std::uint64_t detect;
    std::uint64_t alloc;
    std::uint64_t access;
    std::uint64_t dmabuf;
};

// A domain that the stock component opened, and its operations before the layer came.
class stock_domain
{
public:
    stock_domain(uct_md_h md, const uct_md_ops* operations) : _md(md), _operations(operations) {}

    uct_md_h md() const { return _md; }
    const uct_md_ops& operations() const { return *_operations; }

private:
    uct_md_h _md;
    const uct_md_ops* _operations;
};

// Request to allocate memory through a domain.
struct allocation_request {
    ucs_memory_type_t type;
    ucs_sys_device_t sys_device; // unknown before UCX 1.19
    unsigned flags;              // UCT_MD_MEM_*
    const char* name;
};

// The layer of one domain. Each operation calls the stock one unless it is overridden. The arguments are those of UCT.
// No exception may leave an operation. Threads: as the operations of a UCT memory domain.
class domain_layer
{
public:
    explicit domain_layer(const stock_domain& stock) : _stock(stock) {}
    virtual ~domain_layer()                      = default;
    domain_layer(const domain_layer&)            = delete;
    domain_layer& operator=(const domain_layer&) = delete;

    virtual void adjust(memory_type_masks& masks) const;
    virtual ucs_status_t mem_alloc(std::size_t* length, void** address, const allocation_request& request,
                                   uct_mem_h* memh);
    virtual ucs_status_t mem_free(uct_mem_h memh);
    virtual ucs_status_t mem_advise(uct_mem_h memh, void* address, std::size_t length, unsigned advice);
    virtual ucs_status_t mem_reg(void* address, std::size_t length, const mem_reg_params* params, uct_mem_h* memh);
    virtual ucs_status_t mem_dereg(const mem_dereg_params* params);
    virtual ucs_status_t mkey_pack(uct_mem_h memh, void* address, std::size_t length, const mkey_pack_params* params,
                                   void* buffer);
    virtual ucs_status_t mem_attach(const void* exported_key, mem_attach_params* params, uct_mem_h* memh);
    // The bytes of a key that mkey_pack packs for another process that uses the same device; `stock` are UCX's. Only
    // asked where the stock domain exports keys.
    virtual std::size_t exported_key_length(std::size_t stock) const { return stock; }
    // From UCX 1.21.
    virtual bool can_pack_element(uct_mem_h) const { return true; }

protected:
    uct_md_h md() const { return _stock.md(); }

private:
    stock_domain _stock;
};

// What stands before the domains and the remote keys of a component.
struct component_layer {
    // Returns null to leave the domain alone. Runs after the stock component has opened it. May throw std::bad_alloc.
    std::unique_ptr<domain_layer> (*open)(const stock_domain& domain, const char* name);
    // Sees a packed key of 8 bytes before the stock component does, and may change it. Anything but UCS_OK is the
    // answer to whoever unpacks the key.
    ucs_status_t (*unpack)(std::uint64_t& key);
    zcopy_layer zcopy{}; // without functions: none
};

// Puts the layer before a component of that name, once. Domains that are open already stay as they are. Returns false
// if there is no such component.
bool add_layers(const char* component, const component_layer& layer);

// The protection domain and the device of a domain of the component "ib". Nothing if the structure in memory is not
// what this library knows, so that it must be left alone.
struct ib_handles {
    ibv_pd* pd;
    ibv_context* context;
};
ib_handles ib_handles_of(uct_md_h md);

// What a memory handle of such a domain says of its registration.
struct ib_registration {
    std::uint32_t lkey;
    bool is_paged_on_demand; // the device may find pages away when it uses the key
};
ib_registration ib_registration_of(uct_mem_h memh);

// Flags of a request to pack a key, 0 if it has none.
unsigned pack_flags(const mkey_pack_params* params);

} // namespace ucxl::abi
