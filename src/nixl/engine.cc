#include "engine.h"

#include "log.h"

namespace ucxl::nixl
{

namespace
{

static_assert(static_cast<int>(outcome::in_progress) == NIXL_IN_PROG);
static_assert(static_cast<int>(outcome::success) == NIXL_SUCCESS);
static_assert(static_cast<int>(outcome::not_posted) == NIXL_ERR_NOT_POSTED);
static_assert(static_cast<int>(outcome::invalid_parameter) == NIXL_ERR_INVALID_PARAM);
static_assert(static_cast<int>(outcome::backend) == NIXL_ERR_BACKEND);
static_assert(static_cast<int>(outcome::not_found) == NIXL_ERR_NOT_FOUND);
static_assert(static_cast<int>(outcome::mismatch) == NIXL_ERR_MISMATCH);
static_assert(static_cast<int>(outcome::not_allowed) == NIXL_ERR_NOT_ALLOWED);
static_assert(static_cast<int>(outcome::repost_active) == NIXL_ERR_REPOST_ACTIVE);
static_assert(static_cast<int>(outcome::not_supported) == NIXL_ERR_NOT_SUPPORTED);
static_assert(static_cast<int>(outcome::disconnected) == NIXL_ERR_REMOTE_DISCONNECT);
static_assert(static_cast<int>(outcome::canceled) == NIXL_ERR_CANCELED);

constexpr const char* sharing_option = "shared_memory";

nixl_status_t status_of(ucs_status_t status)
{
    return static_cast<nixl_status_t>(outcome_of(status));
}

// Memory of this agent: what registerMem() made.
struct own_memory final : nixlBackendMD {
    explicit own_memory(std::shared_ptr<region> owned) : nixlBackendMD(true), memory(std::move(owned)) {}
    std::shared_ptr<region> memory;
};

// Memory that transfers go to and come from: of another agent, or of this one.
struct target_memory final : nixlBackendMD {
    explicit target_memory(const region_info& region) : nixlBackendMD(false), info(region) {}
    region_info info;
};

struct request final : nixlBackendReqH {
    explicit request(transfer_ptr made) : prepared(std::move(made)) {}
    transfer_ptr prepared;
};

// Calls what NIXL asked for. It has no way for exceptions.
template <typename Call>
nixl_status_t guarded(Call&& call) noexcept
{
    try {
        return call();
    } catch (const std::bad_alloc&) {
        return NIXL_ERR_BACKEND;
    } catch (const std::exception& failure) {
        log_error("{}", failure.what());
        return NIXL_ERR_BACKEND;
    }
}

bool is_inside(const nixlMetaDesc& block, const region_info& region)
{
    return block.addr >= region.address && block.addr - region.address <= region.length &&
           block.len <= region.length - (block.addr - region.address);
}

// The region that a descriptor is in, by what NIXL put beside it.
template <typename Memory>
const region_info& info_of(const nixlMetaDesc& block)
{
    if constexpr (std::is_same_v<Memory, own_memory>) {
        return static_cast<const own_memory*>(block.metadataP)->memory->info();
    } else {
        return static_cast<const target_memory*>(block.metadataP)->info;
    }
}

template <typename Memory>
std::optional<block_list> blocks_of(const nixl_meta_dlist_t& descriptors)
{
    block_list made;
    made.reserve(static_cast<std::size_t>(descriptors.descCount()));
    for (const nixlMetaDesc& each : descriptors) {
        if (each.metadataP == nullptr) {
            return std::nullopt;
        }
        const region_info& region = info_of<Memory>(each);
        if (!is_inside(each, region)) {
            log_error("a descriptor of {} bytes is not inside of its registered memory", each.len);
            return std::nullopt;
        }
        made.add(region.id, each.addr - region.address, each.len);
    }
    return made;
}

bool have_equal_lengths(const nixl_meta_dlist_t& one, const nixl_meta_dlist_t& two)
{
    return one.descCount() == two.descCount() &&
           std::equal(one.begin(), one.end(), two.begin(),
                      [](const nixlMetaDesc& a, const nixlMetaDesc& b) { return a.len == b.len; });
}

std::optional<sharing> sharing_of(const std::string& text)
{
    return text == "mapped" ? std::optional(sharing::mapped)
           : text == "move" ? std::optional(sharing::move)
           : text == "no"   ? std::optional(sharing::never)
                            : std::nullopt;
}

} // namespace

engine::engine(const nixlBackendInitParams* params) : nixlBackendEngine(params)
{
    const auto status = guarded([&] {
        if (!read_options(*params->customParams)) {
            return NIXL_ERR_INVALID_PARAM;
        }
        _worker = worker::create(localAgent);
        if (_worker == nullptr) {
            return NIXL_ERR_BACKEND;
        }
        if (params->enableProgTh) {
            _thread.emplace(*_worker);
        }
        return NIXL_SUCCESS;
    });
    initErr           = status != NIXL_SUCCESS;
}

engine::~engine()
{
    if (_worker != nullptr && !_worker->is_of_this_process()) {
        static_cast<void>(_worker.release());
    }
}

nixl_b_params_t engine::default_options()
{
    return {{sharing_option, "mapped"}};
}

bool engine::read_options(const nixl_b_params_t& options)
{
    const auto found = options.find(sharing_option);
    if (found == options.end()) {
        return true;
    }
    const auto value = sharing_of(found->second);
    if (!value) {
        log_error("{}: \"{}\" is none of mapped, move, no", sharing_option, found->second);
        return false;
    }
    _sharing = *value;
    return true;
}

// In a child of fork() nothing is done: a thread of the parent may have held any lock.
template <typename Call>
nixl_status_t engine::here(Call&& call) const noexcept
{
    return _worker->is_of_this_process() ? guarded(call) : NIXL_ERR_NOT_ALLOWED;
}

nixl_status_t engine::registerMem(const nixlBlobDesc& memory, const nixl_mem_t& type, nixlBackendMD*& made)
{
    return here([&] {
        if (type != DRAM_SEG) {
            return NIXL_ERR_NOT_SUPPORTED;
        }
        if (memory.addr == 0 || memory.len == 0 || memory.addr + memory.len < memory.addr) {
            return NIXL_ERR_INVALID_PARAM;
        }
        made = new own_memory(_worker->add_region(reinterpret_cast<void*>(memory.addr), memory.len, _sharing));
        return NIXL_SUCCESS;
    });
}

nixl_status_t engine::deregisterMem(nixlBackendMD* registered)
{
    return here([&] {
        const std::unique_ptr<own_memory> ended(static_cast<own_memory*>(registered));
        return status_of(_worker->end_region(ended->memory));
    });
}

nixl_status_t engine::getPublicData(const nixlBackendMD* registered, std::string& bytes) const
{
    return here([&] {
        bytes = encode(static_cast<const own_memory*>(registered)->memory->info());
        return NIXL_SUCCESS;
    });
}

nixl_status_t engine::getConnInfo(std::string& bytes) const
{
    return here([&] {
        bytes = _worker->connection();
        return NIXL_SUCCESS;
    });
}

nixl_status_t engine::loadRemoteConnInfo(const std::string& agent, const std::string& bytes)
{
    return here([&] { return status_of(_worker->connect(agent, bytes)); });
}

nixl_status_t engine::connect(const std::string& agent)
{
    return here([&] { return _worker->is_connected(agent) ? NIXL_SUCCESS : NIXL_ERR_NOT_FOUND; });
}

nixl_status_t engine::disconnect(const std::string& agent)
{
    return here([&] { return status_of(_worker->disconnect(agent)); });
}

nixl_status_t engine::loadRemoteMD(const nixlBlobDesc& memory, const nixl_mem_t& type, const std::string& agent,
                                   nixlBackendMD*& made)
{
    return here([&] {
        const auto info = decode_region(memory.metaInfo);
        if (type != DRAM_SEG || !info || info->address != memory.addr || info->length != memory.len) {
            log_error("the metadata of memory of agent \"{}\" is not of this backend", agent);
            return NIXL_ERR_MISMATCH;
        }
        if (!_worker->is_connected(agent)) {
            return NIXL_ERR_NOT_FOUND;
        }
        made = new target_memory(*info);
        return NIXL_SUCCESS;
    });
}

nixl_status_t engine::loadLocalMD(nixlBackendMD* registered, nixlBackendMD*& made)
{
    return here([&] {
        made = new target_memory(static_cast<const own_memory*>(registered)->memory->info());
        return NIXL_SUCCESS;
    });
}

nixl_status_t engine::unloadMD(nixlBackendMD* loaded)
{
    delete loaded;
    return NIXL_SUCCESS;
}

nixl_status_t engine::prepXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local,
                               const nixl_meta_dlist_t& remote, const std::string& agent, nixlBackendReqH*& handle,
                               const nixl_opt_b_args_t* /*options*/) const
{
    return here([&] {
        if (local.getType() != DRAM_SEG || remote.getType() != DRAM_SEG) {
            return NIXL_ERR_NOT_SUPPORTED;
        }
        if (local.isEmpty() || !have_equal_lengths(local, remote)) {
            log_error("the descriptor lists are empty, or have different lengths");
            return NIXL_ERR_INVALID_PARAM;
        }
        auto here  = blocks_of<own_memory>(local);
        auto there = blocks_of<target_memory>(remote);
        if (!here || !there) {
            return NIXL_ERR_INVALID_PARAM;
        }
        auto made = _worker->prepare(operation == NIXL_READ ? direction::read : direction::write, std::move(*here),
                                     agent, std::move(*there));
        if (!made) {
            return status_of(made.error());
        }
        handle = new request(std::move(*made));
        return NIXL_SUCCESS;
    });
}

nixl_status_t engine::postXfer(const nixl_xfer_op_t& /*operation*/, const nixl_meta_dlist_t& /*local*/,
                               const nixl_meta_dlist_t& /*remote*/, const std::string& /*agent*/,
                               nixlBackendReqH*& handle, const nixl_opt_b_args_t* options) const
{
    return here([&] {
        std::optional<std::string> notice;
        if (options != nullptr && options->hasNotif) {
            notice = options->notifMsg;
        }
        const auto status = _worker->post(*static_cast<request*>(handle)->prepared, std::move(notice));
        if (status == UCS_ERR_BUSY) {
            return NIXL_ERR_REPOST_ACTIVE;
        }
        const std::scoped_lock guard(_refused_lock);
        if (auto refused = _refused.extract(handle); !refused.empty()) {
            static_cast<void>(refused.mapped().release()); // the caller's again, and its next release has to wait
        }
        return status_of(status);
    });
}

nixl_status_t engine::checkXfer(nixlBackendReqH* handle) const
{
    return here([&] { return status_of(_worker->check(*static_cast<request*>(handle)->prepared)); });
}

nixl_status_t engine::releaseReqH(nixlBackendReqH* handle) const
{
    return here([&] {
        std::unique_lock guard(_refused_lock);
        auto refused = _refused.extract(handle);
        guard.unlock();
        if (!refused.empty()) {
            return NIXL_SUCCESS; // NIXL forgets it whatever is returned; what UCX has not ended stays with the worker
        }
        std::unique_ptr<request> ended(static_cast<request*>(handle));
        if (_worker->end(*ended->prepared) != UCS_OK) {
            log_error("a transfer cannot be released: its agent does not go on, and UCX still uses the memory");
            guard.lock();
            _refused.emplace(handle, std::move(ended));
            return NIXL_ERR_NOT_ALLOWED;
        }
        return NIXL_SUCCESS;
    });
}

nixl_status_t engine::getNotifs(notif_list_t& received)
{
    return here([&] {
        if (!received.empty()) {
            return NIXL_ERR_INVALID_PARAM;
        }
        received = _worker->take_notices();
        return NIXL_SUCCESS;
    });
}

nixl_status_t engine::genNotif(const std::string& agent, const std::string& text) const
{
    return here([&] { return status_of(_worker->send_notice(agent, text)); });
}

} // namespace ucxl::nixl
