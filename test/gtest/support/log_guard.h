// While one lives, a warning or an error that UCX logs (in any thread) and that nobody expected fails the current test.
//
// Example:
//     class my_test : public ucxl::test::ucx_test {};          // has a guard for the time of each test
//     TEST_F(my_test, refuses_a_stale_window) { logs().expect("not inside a live window"); ... }
#pragma once

#include <cstddef>
#include <string>

#include <gtest/gtest.h>

namespace ucxl::test
{

// One at a time.
class log_guard
{
public:
    log_guard();
    // Fails the test if an expected message did not come.
    ~log_guard();
    log_guard(const log_guard&)            = delete;
    log_guard& operator=(const log_guard&) = delete;

    // Messages that contain `part` are not printed and fail nothing from now on; at least one has to come.
    void expect(const std::string& part);
    // As expect(), but none has to come.
    void allow(const std::string& part);
    // How many messages contained `part`, which was expected or allowed before.
    std::size_t count(const std::string& part) const;
};

// Base of the tests that use UCX.
class ucx_test : public testing::Test
{
protected:
    log_guard& logs() { return _logs; }

private:
    log_guard _logs;
};

} // namespace ucxl::test
