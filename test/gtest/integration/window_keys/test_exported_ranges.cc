// Which bytes an exported handle shows: all ranges of one registration can be exported and imported in any order.
#include "dpu.h"
#include "own_peer.h"

#include "support/log_guard.h"
#include "support/random.h"

#include <algorithm>
#include <memory>

namespace ucxl::test
{
namespace
{

// A part of a buffer that is mapped as a whole: UCP takes the registration of the whole.
class part
{
public:
    part(ucp_context_h context, std::span<std::byte> bytes) : _context(context), _bytes(bytes)
    {
        ucp_mem_map_params_t params{};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address    = bytes.data();
        params.length     = bytes.size();
        check_ok(ucp_mem_map(context, &params, &_memh), "ucp_mem_map");
    }
    ~part() { ucp_mem_unmap(_context, _memh); }
    part(const part&)            = delete;
    part& operator=(const part&) = delete;

    ucp_mem_h memh() const { return _memh; }
    std::span<std::byte> bytes() const { return _bytes; }

private:
    ucp_context_h _context;
    std::span<std::byte> _bytes;
    ucp_mem_h _memh = nullptr;
};

class exported_ranges : public ucx_test
{
};

TEST_F(exported_ranges, of_one_registration_are_read_in_any_order_of_export_and_import)
{
    constexpr std::size_t length = 1 << 16;
    random random(run_seed());
    own_peer host;
    dpu_side dpu;
    for (int round = 0; round < 30; ++round) {
        plain_buffer whole(host.context(), length);
        for (std::byte& each : whole.bytes()) {
            each = static_cast<std::byte>(random.next());
        }
        std::vector<std::unique_ptr<part>> parts;
        std::vector<std::vector<std::byte>> packed;
        for (int i = 0; i < 4; ++i) {
            const auto first  = static_cast<std::size_t>(random.below(length));
            const auto number = static_cast<std::size_t>(1 + random.below(length - first));
            parts.push_back(std::make_unique<part>(host.context(), whole.bytes().subspan(first, number)));
            packed.push_back(exported(parts.back()->memh()));
            ASSERT_TRUE(is_of_the_library(packed.back()));
        }
        std::vector<std::unique_ptr<imported_memory>> imports(parts.size());
        std::vector<std::size_t> order{0, 1, 2, 3};
        random.shuffle(order);
        for (const std::size_t i : order) {
            imports[i] = std::make_unique<imported_memory>(dpu.context(), packed[i]);
            check_ok(imports[i]->status(), "import");
        }
        random.shuffle(order);
        for (const std::size_t i : order) {
            const auto bytes = parts[i]->bytes();
            std::vector<std::byte> got(bytes.size());
            ASSERT_EQ(dpu.read(*imports[i], bytes.data(), got), UCS_OK)
                << "round " << round << ", part " << i << " of " << bytes.size() << " bytes";
            ASSERT_TRUE(std::ranges::equal(got, bytes));
        }
    }
}

} // namespace
} // namespace ucxl::test
