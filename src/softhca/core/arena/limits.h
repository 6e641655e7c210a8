// The limits that QUERY_HCA_CAP reports and that commands are checked against. Those of keys are in access.h and
// arena.h.
#pragma once

#include <cstdint>

namespace ucxl::softhca
{

inline constexpr unsigned log_max_cq_size         = 22; // entries
inline constexpr unsigned log_max_qp_size         = 15; // entries of a receive queue, 64-byte blocks of a send queue
inline constexpr unsigned log_max_srq_size        = 15;
inline constexpr unsigned log_max_klm_list        = 16;
inline constexpr unsigned log_max_message         = 30; // bytes
inline constexpr unsigned log_max_reads           = 4;  // reads and atomics outstanding on a queue pair
inline constexpr unsigned log_max_dci_streams     = 6;  // channels of a DCI, and those that may be in error
inline constexpr unsigned max_send_wqe_bytes      = 1024;
inline constexpr unsigned max_atomic_bytes        = 8;
inline constexpr unsigned max_receive_wqe_bytes   = 512;
inline constexpr unsigned gid_table_entries       = 1;
inline constexpr unsigned pkey_table_entries      = 1;
inline constexpr std::uint16_t default_pkey       = 0xffff;
inline constexpr std::uint64_t default_gid_prefix = 0xfe80000000000000;
inline constexpr unsigned clock_khz               = 1'000'000; // of timestamps in CQEs: nanoseconds

// The index of a key is the key without its variant byte.
inline constexpr unsigned key_index_bits      = 24;
inline constexpr std::uint32_t first_high_key = 0xff0000; // of a card that gives high ones

// A reserved key (dump_fill_mkey): as a local key it reads as zeros, and writes to it are discarded.
inline constexpr std::uint32_t key_without_memory = 0x200;

} // namespace ucxl::softhca
