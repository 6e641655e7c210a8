// The settings of a user, from options of softhca-run and SOFTHCA_* variables.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "softhca/core/fabric.h"

namespace ucxl::softhca
{

// The variables of the options, and the one that tells children of softhca-run where their fabric is.
inline constexpr const char* devices_variable   = "SOFTHCA_DEVICES";
inline constexpr const char* functions_variable = "SOFTHCA_FUNCTIONS";
inline constexpr const char* profile_variable   = "SOFTHCA_PROFILE";
inline constexpr const char* times_variable     = "SOFTHCA_TIMES";
inline constexpr const char* order_variable     = "SOFTHCA_ORDER";
inline constexpr const char* netdev_variable    = "SOFTHCA_NETDEV";
inline constexpr const char* fault_variable     = "SOFTHCA_FAULT";
inline constexpr const char* trace_variable     = "SOFTHCA_TRACE";
inline constexpr const char* stats_variable     = "SOFTHCA_STATS";
inline constexpr const char* fabric_variable    = "SOFTHCA_FABRIC"; // PID:DESCRIPTOR

// Texts as given; empty when not given.
struct settings {
    std::string devices;
    std::string functions; // of each device
    std::string profile;   // of capabilities, with changes
    std::string times;     // modelled
    std::string order;
    std::string netdev; // a network interface of the machine
    std::string faults; // separated by semicolons
    std::string trace;  // a file, "-" for standard error
    std::string stats;  // a file, "-" for standard output
};

settings settings_of_environment();

// The error names the option and what it may be.
std::expected<fabric_options, std::string> to_options(const settings& given);

// The same order. One that has no seed gets one that differs from run to run.
std::string order_with_seed(const std::string& order);

// The place of the fabric that softhca-run made.
struct fabric_place {
    int process = 0;
    int file    = 0;
};

// Nothing when the text is not a place.
std::optional<fabric_place> parse_fabric_place(std::string_view text);
std::string to_text(const fabric_place& place);

} // namespace ucxl::softhca
