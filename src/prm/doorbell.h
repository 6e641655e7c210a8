// Doorbells: the records in host memory with producer and consumer counters, and the words written to the device.
#pragma once

#include "names.h"
#include "view.h"

namespace ucxl::prm
{

// The offsets of the words in a doorbell page (UAR).
inline constexpr std::size_t uar_cq_doorbell_offset   = 0x20;
inline constexpr std::size_t uar_send_doorbell_offset = 0x800; // the first 8 bytes of a WQE, or all of it

// The doorbell record of a queue pair: counters of WQEs produced, modulo 2^16. The send counter counts 64-byte blocks.
struct qp_doorbell_record : structure<qp_doorbell_record, 8> {
    static constexpr f<0x010, 16> receive_counter{};
    static constexpr f<0x030, 16> send_counter{};
    using fields = field_list<receive_counter, send_counter>;
};
static_assert(well_formed<qp_doorbell_record>);

struct srq_doorbell_record : structure<srq_doorbell_record, 8> {
    static constexpr f<0x010, 16> counter{};
    using fields = field_list<counter>;
};
static_assert(well_formed<srq_doorbell_record>);

enum class cq_arm_kind : std::uint8_t {
    any_completion = 0,
    solicited_only = 1,
};

template <>
struct value_names<cq_arm_kind> : one_of<cq_arm_kind::any_completion, cq_arm_kind::solicited_only> {
};

// The doorbell record of a completion queue: CQEs consumed, and the last request for an event, which the doorbell
// repeats. The sequence number changes with every event delivered, so that a late request does not ask for it again.
struct cq_doorbell_record : structure<cq_doorbell_record, 8> {
    static constexpr f<0x008, 24> consumer_counter{};
    static constexpr f<0x022, 2> arm_sequence{};
    static constexpr f<0x027, 1, cq_arm_kind> arm_kind{};
    static constexpr f<0x028, 24> arm_consumer_counter{};
    using fields = field_list<consumer_counter, arm_sequence, arm_kind, arm_consumer_counter>;
};
static_assert(well_formed<cq_doorbell_record>);

// The 8 bytes written at uar_cq_doorbell_offset.
struct cq_doorbell : structure<cq_doorbell, 8> {
    static constexpr f<0x002, 2> arm_sequence{};
    static constexpr f<0x007, 1, cq_arm_kind> arm_kind{};
    static constexpr f<0x008, 24> consumer_counter{};
    static constexpr f<0x028, 24> cqn{};
    using fields = field_list<arm_sequence, arm_kind, consumer_counter, cqn>;
};
static_assert(well_formed<cq_doorbell>);

} // namespace ucxl::prm
