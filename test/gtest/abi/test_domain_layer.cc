// Layers over the domains of a component, which is made up here.
#include "abi/domain_layer.h"
#include "abi/ucx.h"
#include "support/log_guard.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace
{

using namespace ucxl::abi;

std::vector<std::string> calls; // in their order

struct fake_domain {
    uct_md super;
    bool is_closed = false;
};

fake_domain domain{};
std::uint64_t unpacked = 0;

void fake_close(uct_md_h md)
{
    calls.emplace_back("stock close");
    reinterpret_cast<fake_domain*>(md)->is_closed = true;
}

ucs_status_t fake_mem_reg(uct_md_h, void*, std::size_t, const mem_reg_params*, uct_mem_h* memh)
{
    calls.emplace_back("stock mem_reg");
    *memh = nullptr;
    return UCS_OK;
}

ucs_status_t fake_mem_dereg(uct_md_h, const mem_dereg_params*)
{
    calls.emplace_back("stock mem_dereg");
    return UCS_ERR_BUSY;
}

const uct_md_ops fake_operations = [] {
    uct_md_ops operations{};
    operations.close     = fake_close;
    operations.mem_reg   = fake_mem_reg;
    operations.mem_dereg = fake_mem_dereg;
    return operations;
}();

ucs_status_t fake_open(uct_component* component, const char* name, const uct_md_config_t*, uct_md_h* md)
{
    if (std::string_view(name) == "none") {
        return UCS_ERR_NO_DEVICE;
    }
    domain = {.super = {.ops = &fake_operations, .component = component}};
    *md    = &domain.super;
    return UCS_OK;
}

// The last arguments differ by release; the key is the second one in all.
ucs_status_t fake_unpack(uct_component*, const void* buffer, void*, void*, void*)
{
    std::memcpy(&unpacked, buffer, sizeof(unpacked));
    return UCS_OK;
}

class counting_layer final : public domain_layer
{
public:
    using domain_layer::domain_layer;
    ~counting_layer() override { calls.emplace_back("layer ends"); }

    ucs_status_t mem_reg(void* address, std::size_t length, const mem_reg_params* params, uct_mem_h* memh) override
    {
        if (length == 0) {
            throw std::bad_alloc();
        }
        calls.emplace_back("layer mem_reg");
        return domain_layer::mem_reg(address, length, params, memh);
    }
};

std::unique_ptr<domain_layer> open_layer(const stock_domain& stock, const char* name)
{
    const std::string_view wanted = name;
    if (wanted == "throws") {
        throw std::bad_alloc();
    }
    return wanted == "plain" ? nullptr : std::make_unique<counting_layer>(stock);
}

ucs_status_t unpack_key(std::uint64_t& key)
{
    if (key == 13) {
        return UCS_ERR_UNREACHABLE;
    }
    ++key;
    return UCS_OK;
}

class domain_layers : public testing::Test
{
protected:
    static uct_component& component()
    {
        static uct_component& fake = *[] {
            EXPECT_TRUE(attach(nullptr));
            auto* const made = new uct_component{};
            std::strcpy(made->name, "fakelayered");
            made->query_md_resources = [](uct_component*, uct_md_resource_desc_t** resources, unsigned* number) {
                *resources = nullptr;
                *number    = 0;
                return UCS_OK;
            };
            made->md_open     = fake_open;
            made->rkey_unpack = reinterpret_cast<void (*)()>(fake_unpack);
            made->md_vfs_init = [](uct_md_h) {};
            made->tl_list     = {&made->tl_list, &made->tl_list};
            // Only into the list: nobody asks it for devices.
            auto* const all = static_cast<ucs_list_link_t*>(find_symbol("uct_components_list"));
            made->list      = {all->prev, all};
            all->prev->next = &made->list;
            all->prev       = &made->list;
            EXPECT_TRUE(add_layers("fakelayered", {.open = open_layer, .unpack = unpack_key}));
            return made;
        }();
        return fake;
    }

    static uct_md_h open(const char* name)
    {
        uct_md_h md = nullptr;
        EXPECT_EQ(component().md_open(&component(), name, nullptr, &md), UCS_OK);
        calls.clear();
        return md;
    }

    static ucs_status_t unpack(std::uint64_t key)
    {
        uct_component& layered = component(); // attaches to UCX
        uct_rkey_t rkey        = 0;
        void* handle           = nullptr;
        if (attached()->unpack_takes_params) {
            using function = ucs_status_t (*)(uct_component*, const void*, const void*, uct_rkey_t*, void**);
            return reinterpret_cast<function>(layered.rkey_unpack)(&layered, &key, nullptr, &rkey, &handle);
        }
        using function = ucs_status_t (*)(uct_component*, const void*, uct_rkey_t*, void**);
        return reinterpret_cast<function>(layered.rkey_unpack)(&layered, &key, &rkey, &handle);
    }
};

using strings = std::vector<std::string>;

TEST_F(domain_layers, see_operations_first_and_pass_on_the_rest)
{
    uct_md_h md = open("layered");
    uct_mem_h memh;
    EXPECT_EQ(md->ops->mem_reg(md, nullptr, 1, nullptr, &memh), UCS_OK);
    EXPECT_EQ(md->ops->mem_dereg(md, nullptr), UCS_ERR_BUSY);
    EXPECT_EQ(calls, (strings{"layer mem_reg", "stock mem_reg", "stock mem_dereg"}));
    md->ops->close(md);
}

TEST_F(domain_layers, end_before_the_stock_domain_which_closes_as_it_was)
{
    uct_md_h md = open("layered");
    EXPECT_NE(md->ops, &fake_operations);
    md->ops->close(md);
    EXPECT_EQ(calls, (strings{"layer ends", "stock close"}));
    EXPECT_EQ(domain.super.ops, &fake_operations);
    EXPECT_TRUE(domain.is_closed);
}

TEST_F(domain_layers, leave_domains_alone_that_get_none)
{
    EXPECT_EQ(open("plain")->ops, &fake_operations);
}

TEST_F(domain_layers, pass_on_that_a_domain_did_not_open)
{
    uct_md_h md = nullptr;
    EXPECT_EQ(component().md_open(&component(), "none", nullptr, &md), UCS_ERR_NO_DEVICE);
    EXPECT_EQ(md, nullptr);
}

TEST_F(domain_layers, that_cannot_be_made_leave_the_domain_alone_and_say_so)
{
    ucxl::test::log_guard log;
    log.expect("stays as it is");
    EXPECT_EQ(open("throws")->ops, &fake_operations);
}

TEST_F(domain_layers, that_throw_give_a_status)
{
    uct_md_h md = open("layered");
    {
        ucxl::test::log_guard log;
        log.expect("mem_reg of a memory domain");
        uct_mem_h memh;
        EXPECT_EQ(md->ops->mem_reg(md, nullptr, 0, nullptr, &memh), UCS_ERR_NO_MEMORY);
    }
    EXPECT_EQ(calls, strings{});
    md->ops->close(md);
}

TEST_F(domain_layers, see_keys_before_the_stock_component_and_may_refuse_them)
{
    unpacked = 0;
    EXPECT_EQ(unpack(13), UCS_ERR_UNREACHABLE);
    EXPECT_EQ(unpacked, 0u);
    EXPECT_EQ(unpack(41), UCS_OK);
    EXPECT_EQ(unpacked, 42u);
}

TEST(ib_registrations, tell_their_key_and_whether_pages_may_be_away)
{
    for (const auto& [flags, is_paged] : {std::pair(0U, false), {1U, true}, {2U, false}, {4U, false}, {32U, true}}) {
        std::array<std::uint32_t, 3> handle{0x1234, 0x5678, flags}; // lkey, rkey, flags (uct_ib_mem_t)
        const auto found = ib_registration_of(handle.data());
        EXPECT_EQ(found.lkey, 0x1234u);
        EXPECT_EQ(found.is_paged_on_demand, is_paged) << flags;
    }
}

TEST_F(domain_layers, are_added_once_and_only_to_components_that_exist)
{
    component();
    EXPECT_TRUE(add_layers("fakelayered", {.open = nullptr, .unpack = nullptr}));
    EXPECT_FALSE(add_layers("nosuchcomponent", {.open = open_layer, .unpack = unpack_key}));
    uct_md_h md = open("layered");
    EXPECT_NE(md->ops, &fake_operations);
    md->ops->close(md);
}

} // namespace
