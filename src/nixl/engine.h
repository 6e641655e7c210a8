// The backend as NIXL sees it: translates its calls to those of a worker.
//
// NIXL looks for the registration of each descriptor before it calls, and hands over what registerMem() or
// loadRemoteMD() made. No exception leaves a function.
#pragma once

#include "nixl_headers.h"
#include "outcome.h"
#include "progress_thread.h"
#include "worker.h"

#include <map>
#include <memory>
#include <mutex>

namespace ucxl::nixl
{

class engine final : public nixlBackendEngine
{
public:
    explicit engine(const nixlBackendInitParams* params);
    ~engine() override;

    static nixl_b_params_t default_options();

    bool supportsRemote() const override { return true; }
    bool supportsLocal() const override { return true; }
    bool supportsNotif() const override { return true; }
    nixl_mem_list_t getSupportedMems() const override { return {DRAM_SEG}; }

    nixl_status_t registerMem(const nixlBlobDesc& memory, const nixl_mem_t& type, nixlBackendMD*& made) override;
    nixl_status_t deregisterMem(nixlBackendMD* registered) override;
    nixl_status_t getPublicData(const nixlBackendMD* registered, std::string& bytes) const override;

    nixl_status_t getConnInfo(std::string& bytes) const override;
    nixl_status_t loadRemoteConnInfo(const std::string& agent, const std::string& bytes) override;
    nixl_status_t connect(const std::string& agent) override;
    nixl_status_t disconnect(const std::string& agent) override;

    nixl_status_t loadRemoteMD(const nixlBlobDesc& memory, const nixl_mem_t& type, const std::string& agent,
                               nixlBackendMD*& made) override;
    nixl_status_t loadLocalMD(nixlBackendMD* registered, nixlBackendMD*& made) override;
    nixl_status_t unloadMD(nixlBackendMD* loaded) override;

    nixl_status_t prepXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local,
                           const nixl_meta_dlist_t& remote, const std::string& agent, nixlBackendReqH*& handle,
                           const nixl_opt_b_args_t* options) const override;
    nixl_status_t postXfer(const nixl_xfer_op_t& operation, const nixl_meta_dlist_t& local,
                           const nixl_meta_dlist_t& remote, const std::string& agent, nixlBackendReqH*& handle,
                           const nixl_opt_b_args_t* options) const override;
    nixl_status_t checkXfer(nixlBackendReqH* handle) const override;
    nixl_status_t releaseReqH(nixlBackendReqH* handle) const override;

    nixl_status_t getNotifs(notif_list_t& received) override;
    nixl_status_t genNotif(const std::string& agent, const std::string& text) const override;

private:
    template <typename Call>
    nixl_status_t here(Call&& call) const noexcept;
    bool read_options(const nixl_b_params_t& options);

    sharing _sharing = sharing::mapped;
    mutable std::mutex _refused_lock;
    // Whose release was refused, and which were not posted again. What is left of them ends after the worker.
    mutable std::map<nixlBackendReqH*, std::unique_ptr<nixlBackendReqH>> _refused;
    std::unique_ptr<worker> _worker;
    std::optional<progress_thread> _thread;
};

} // namespace ucxl::nixl
